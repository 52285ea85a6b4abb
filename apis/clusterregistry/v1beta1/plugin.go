package v1beta1

// PluginConfig returns what a credential plugin of a client gets of a way to sign in to a
// cluster: provider.config, or the fields of oidc or objectRef, or, where there are none,
// clusterName with the name of the cluster, which the plugins of cluster-inventory-api ask
// for. Whatever hands an entry to such a plugin uses it, so that one entry means the same to
// all. Nothing in it says what to run.
func (a *Access) PluginConfig(cluster string) map[string]any {
	config := map[string]any{}
	add := func(key, value string) {
		if value != "" {
			config[key] = value
		}
	}
	switch {
	case a.Provider != nil:
		for key, value := range a.Provider.Config {
			config[key] = value
		}
	case a.OIDC != nil:
		add("issuerURL", a.OIDC.IssuerURL)
		add("clientID", a.OIDC.ClientID)
		if len(a.OIDC.Scopes) > 0 {
			scopes := make([]any, len(a.OIDC.Scopes))
			for i, scope := range a.OIDC.Scopes {
				scopes[i] = scope
			}
			config["scopes"] = scopes
		}
	case a.ObjectRef != nil:
		add("apiVersion", a.ObjectRef.APIVersion)
		add("kind", a.ObjectRef.Kind)
		add("namespace", a.ObjectRef.Namespace)
		add("name", a.ObjectRef.Name)
	}
	if len(config) == 0 {
		add("clusterName", cluster)
	}
	return config
}
