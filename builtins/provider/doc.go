// Package provider is what the plugins of model adapters share: the settings
// that say where a service is, and the registration of an adapter under the
// route of its entry's id.
//
//	type config struct {
//		provider.Settings
//		Extra bool `json:"extra"`
//	}
//
//	fields := provider.Fields()
//	fields["extra"] = schema.Boolean()
//
// Settings is plain data; Register is for the apply of a plugin and fails as
// llm.Registry.RegisterAdapter does.
package provider
