package fs

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ouro-run/ouro/seams"
)

// Key is the service.
var Key = seams.Key[*Folder]{Name: "fs"}

// Bounds of a folder's operations.
const (
	MaxFile    = 4 << 20 // bytes of a file that is read or written
	MaxEntries = 10_000  // entries of a folder that is listed
)

// Folder is a folder whose files can be read and, if it says so, written.
type Folder struct {
	root  *os.Root
	write bool
}

// Info describes a file or folder.
type Info struct {
	Name     string    `json:"name"`
	Type     Type      `json:"type"`
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

// Type is what an entry of a folder is.
type Type string

// Types of entries.
const (
	File   Type = "file"
	Dir    Type = "folder"
	Others Type = "other" // a link, a device, a socket
)

// Open opens a folder. NOT_FOUND when it is not there.
func Open(dir string, write bool) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, coded("fs.Open", dir, err)
	}
	return &Folder{root, write}, nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// local makes a path of the folder of what a plugin wrote.
func local(op, p string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(p, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(p, 0) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", seams.Errorf(seams.AccessDenied, op, "%q is not a path within the folder: give one relative to it", p)
	}
	return filepath.FromSlash(clean), nil
}

// coded gives an error of the operating system a code.
func coded(op, p string, err error) error {
	code := seams.AccessDenied
	switch why := (*seams.Error)(nil); {
	case errors.As(err, &why):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return seams.Errorf(seams.NotFound, op, "%q does not exist", p)
	case !errors.Is(err, fs.ErrPermission) && !strings.Contains(err.Error(), "escapes"):
		code = seams.InvalidArgument
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the path within is the operator's business
	}
	return seams.Errorf(code, op, "%q: %w", p, err)
}

// ReadText reads a text file.
func (f *Folder) ReadText(name string) (string, error) {
	const op = "fs.readText"
	p, err := local(op, name)
	if err != nil {
		return "", err
	}
	info, err := f.root.Stat(p)
	if err == nil && !info.Mode().IsRegular() {
		err = seams.Errorf(seams.InvalidArgument, op, "%q is no file", name)
	}
	if err != nil {
		return "", coded(op, name, err)
	}
	in, err := f.root.Open(p)
	if err != nil {
		return "", coded(op, name, err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	switch {
	case err != nil:
		return "", coded(op, name, err)
	case len(text) > MaxFile:
		return "", seams.Errorf(seams.TooLarge, op, "%q has more than %d bytes", name, MaxFile)
	case !utf8.Valid(text):
		return "", seams.Errorf(seams.InvalidArgument, op, "%q is not UTF-8 text", name)
	}
	return string(text), nil
}

// List lists a folder by name; "." is the folder itself.
func (f *Folder) List(name string) ([]Info, error) {
	const op = "fs.list"
	p, err := local(op, name)
	if err != nil {
		return nil, err
	}
	info, err := f.root.Stat(p)
	if err == nil && !info.IsDir() {
		err = seams.Errorf(seams.InvalidArgument, op, "%q is no folder", name) // to open a pipe would wait
	}
	if err != nil {
		return nil, coded(op, name, err)
	}
	in, err := f.root.Open(p)
	if err != nil {
		return nil, coded(op, name, err)
	}
	defer in.Close()
	list, err := in.ReadDir(MaxEntries + 1)
	if err != nil && err != io.EOF {
		return nil, coded(op, name, err)
	}
	if len(list) > MaxEntries {
		return nil, seams.Errorf(seams.TooLarge, op, "%q has more than %d entries", name, MaxEntries)
	}
	out := make([]Info, 0, len(list))
	for _, e := range list {
		if info, err := e.Info(); err == nil { // gone meanwhile otherwise
			out = append(out, describe(info))
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Stat describes a file or folder; links are followed.
func (f *Folder) Stat(name string) (Info, error) {
	const op = "fs.stat"
	p, err := local(op, name)
	if err != nil {
		return Info{}, err
	}
	info, err := f.root.Stat(p)
	if err != nil {
		return Info{}, coded(op, name, err)
	}
	return describe(info), nil
}

func describe(info fs.FileInfo) Info {
	t := Others
	switch {
	case info.Mode().IsRegular():
		t = File
	case info.IsDir():
		t = Dir
	}
	return Info{info.Name(), t, info.Size(), info.ModTime().UTC().Truncate(time.Millisecond)}
}

// WriteText writes a text file in one step and makes the folders above it.
func (f *Folder) WriteText(name, text string) error {
	const op = "fs.writeText"
	p, err := f.writable(op, name)
	if err != nil {
		return err
	}
	if len(text) > MaxFile {
		return seams.Errorf(seams.TooLarge, op, "the text for %q has more than %d bytes", name, MaxFile)
	}
	if info, err := f.root.Lstat(p); err == nil && !info.Mode().IsRegular() {
		return seams.Errorf(seams.InvalidArgument, op, "%q is there and is no file", name)
	}
	if err := f.root.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return coded(op, name, err)
	}
	temporary := filepath.Join(filepath.Dir(p), ".ouro-"+rand.Text())
	err = f.root.WriteFile(temporary, []byte(text), 0o644)
	if err == nil {
		err = f.root.Rename(temporary, p)
	}
	if err != nil {
		return errors.Join(coded(op, name, err), ignoreAbsent(f.root.Remove(temporary)))
	}
	return nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Remove removes a file or an empty folder.
func (f *Folder) Remove(name string) error {
	const op = "fs.remove"
	p, err := f.writable(op, name)
	if err != nil {
		return err
	}
	if err := f.root.Remove(p); err != nil {
		return coded(op, name, err)
	}
	return nil
}

func (f *Folder) writable(op, name string) (string, error) {
	if !f.write {
		return "", seams.Errorf(seams.AccessDenied, op, "the folder is read-only: its entry in cordis.yml must say write: true")
	}
	p, err := local(op, name)
	if err == nil && p == "." {
		err = seams.Errorf(seams.AccessDenied, op, "the folder itself cannot be written")
	}
	return p, err
}
