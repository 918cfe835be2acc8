package llm

// Identity is the program as providers see it.
type Identity struct {
	Product string
	Version string
	URL     string
}

// Ouro is this program's identity in a version.
func Ouro(version string) Identity {
	return Identity{"ouro", version, "https://github.com/ouro-run/ouro"}
}

// Headers returns what every request to a provider carries, and no more:
// "user-agent: product/version (+url)". They win over configured headers
// (M-53).
func (i Identity) Headers() map[string]string {
	return map[string]string{"user-agent": i.Product + "/" + i.Version + " (+" + i.URL + ")"}
}
