package memory_test

import (
	"context"
	"fmt"

	"github.com/ouro-run/ouro/seams/memory"
)

func Example() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	user := memory.Scope{User: "u1"}
	agent := memory.Scope{User: "u1", Agent: "main"}
	store.Put(ctx, memory.Item{Scope: user, Key: "tea", Kind: memory.Fact, Text: "likes green tea"})
	store.Put(ctx, memory.Item{Scope: memory.Scope{User: "u2"}, Key: "tea", Kind: memory.Fact, Text: "hates green tea"})

	found, err := store.Search(ctx, memory.Query{Scope: agent, Text: "tea"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Item.Text, found.Ranking)
	}
	_, err = store.Get(ctx, agent, "tea")
	fmt.Println(err)
	// Output:
	// likes green tea text
	// memory.get: nothing is stored under this key in this scope [NOT_FOUND]
}
