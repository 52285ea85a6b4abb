package render

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/net/http/httpproxy"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// bought is the environment of an operator that the Operator Lifecycle Manager runs.
func bought() Proxy {
	return ProxyFrom(func(name string) string {
		return map[string]string{"HTTPS_PROXY": "http://proxy.example:3128", "http_proxy": "proxy.example:3129", "NO_PROXY": ".corp.example, 10.0.0.0/8", "KUBERNETES_SERVICE_HOST": "192.0.2.1"}[name]
	})
}

// TestProxy asks as Go's client does which way leads where: stores that are outside are reached
// through the proxy, and nothing else is.
func TestProxy(t *testing.T) {
	variables := map[string]string{}
	for _, variable := range bought().environment("cluster.example") {
		variables[variable.Name] = variable.Value
	}
	way := (&httpproxy.Config{HTTPSProxy: variables["HTTPS_PROXY"], HTTPProxy: variables["HTTP_PROXY"], NoProxy: variables["NO_PROXY"]}).ProxyFunc()
	for address, want := range map[string]string{
		"https://registries.s3.eu-1.amazonaws.com/":     "http://proxy.example:3128",
		"http://store.example/":                         "http://proxy.example:3129",
		"https://fleet-etcd-0.fleet-etcd.team.svc:2379": "",
		"https://minio.store.svc.cluster.example:9000":  "",
		"https://192.0.2.1:443/":                        "",
		"http://169.254.169.254/latest/meta-data/":      "",
		"http://[fd00:ec2::23]/v1/credentials":          "",
		"https://127.0.0.1:2379":                        "",
		"https://[::1]:2379":                            "",
		"https://store.corp.example":                    "",
		"https://10.1.2.3":                              "",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		through, err := way(request.URL)
		got := ""
		if through != nil {
			got = through.String()
		}
		if err != nil || got != want {
			t.Errorf("%s: through %q, %v; want %q", address, got, err, want)
		}
	}
	if got := (ProxyFrom(func(name string) string { return map[string]string{"NO_PROXY": ".corp.example"}[name] })).environment("cluster.local"); got != nil {
		t.Errorf("without a proxy: %v", got)
	}
}

// TestProxyCredentials has none of them in what pods get.
func TestProxyCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"proxy.example:3128":                   "proxy.example:3128",
		"http://proxy.example:3128":            "http://proxy.example:3128",
		"http://user:pass@proxy.example:3128":  "http://proxy.example:3128",
		"user:p@ss/word@proxy.example":         "proxy.example",
		"user:p://x@proxy.example:3128":        "proxy.example:3128",
		"HTTP://user:p://x@proxy.example":      "HTTP://proxy.example",
		"socks5://user:a%40b@[2001:db8::1]:99": "socks5://[2001:db8::1]:99",
	} {
		for _, name := range []string{"HTTPS_PROXY", "http_proxy"} {
			p := ProxyFrom(func(asked string) string { return map[string]string{name: text}[asked] })
			if got := p.HTTPS + p.HTTP; got != want {
				t.Errorf("%s=%s: got %q, want %q", name, text, got, want)
			}
		}
	}
}

func TestProxyPorts(t *testing.T) {
	for proxy, want := range map[Proxy]string{
		{}: "[]",
		{HTTPS: "http://proxy:3128", HTTP: "http://proxy:3128"}: "[3128]",
		{HTTPS: "proxy:3128", HTTP: "http://user:pass@proxy"}:   "[80 3128]",
		{HTTPS: "https://proxy"}:                                "[443]",
		{HTTPS: "socks5://proxy"}:                               "[1080]",
		{HTTPS: "http://[fd00::1]:8080", No: ".example"}:        "[8080]",
	} {
		if got := fmt.Sprint(proxy.ports()); got != want {
			t.Errorf("%+v: %s, want %s", proxy, got, want)
		}
	}
}

// TestBehindAProxy gives the way to each container that talks to a store, lets it out to the
// proxy, and gives nothing to a Job whose store is a volume.
func TestBehindAProxy(t *testing.T) {
	const bucket = `{s3: {bucket: registries, region: eu}}`
	want := bought().environment("cluster.local")
	for _, step := range []string{"save", "verify", "prune", "delete"} {
		in := saved(t, bucket, step)
		in.Environment.ClusterDomain, in.Environment.Proxy = "cluster.local", bought()
		result := rendered(t, in)
		if got := convert[batchv1.Job](t, find(result, "Job", "fleet-backup")).Spec.Template.Spec.Containers[0].Env; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
		if got := portsOut(convert[networkingv1.NetworkPolicy](t, find(result, "NetworkPolicy", "fleet-backup"))); !slices.Contains(got, 3128) || !slices.Contains(got, 3129) || !slices.Contains(got, 443) {
			t.Errorf("%s: it is let out to the ports %v", step, got)
		}
		in = saved(t, `{persistentVolumeClaim: {claimName: backups}}`, step)
		in.Environment.Proxy = bought()
		if got := convert[batchv1.Job](t, find(rendered(t, in), "Job", "fleet-backup")).Spec.Template.Spec.Containers[0].Env; got != nil {
			t.Errorf("%s on a volume: %v", step, got)
		}
	}
	in := restoring(t, Restore{Store: s3(), Source: "0b9c4b52", Task: "show"})
	in.Environment.ClusterDomain, in.Environment.Proxy = "cluster.local", bought()
	if got := convert[batchv1.Job](t, find(rendered(t, in), "Job", "fleet-restore")).Spec.Template.Spec.Containers[0].Env; !slices.Equal(got, want) {
		t.Errorf("one is looked up: %v", got)
	}
	in.Restore = &Restore{Store: s3(), Source: "0b9c4b52", Name: "b", SHA256: "0a", Lineage: "1f0c"}
	for _, container := range convert[appsv1.StatefulSet](t, find(rendered(t, in), "StatefulSet", "fleet-etcd")).Spec.Template.Spec.InitContainers {
		if got := slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "HTTPS_PROXY" }); got != (container.Name == "fetch") {
			t.Errorf("container %s of a member has a proxy: %t", container.Name, got)
		}
	}
}

// portsOut are those that a policy lets pods out to.
func portsOut(policy *networkingv1.NetworkPolicy) []int32 {
	var out []int32
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			if port.Port != nil {
				out = append(out, port.Port.IntVal)
			}
		}
	}
	return out
}
