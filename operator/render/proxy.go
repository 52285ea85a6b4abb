package render

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Proxy is how what is outside of the host cluster is reached, in the form of the environment
// variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. The zero value is directly.
type Proxy struct{ HTTPS, HTTP, No string }

// ProxyFrom reads it from an environment, without users and passwords: many may read the pods of a
// registry. The host's API is never asked through a proxy.
func ProxyFrom(getenv func(string) string) Proxy {
	read := func(name string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return getenv(strings.ToLower(name))
	}
	p := Proxy{HTTPS: anonymous(read("HTTPS_PROXY")), HTTP: anonymous(read("HTTP_PROXY")), No: read("NO_PROXY")}
	if host := getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		p.No = listed(p.No, host)
	}
	return p
}

// scheme begins the URL of a proxy, of which it may be left out.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// anonymous returns the URL of a proxy without a user and a password. These may have any
// character: the last @ ends them.
func anonymous(text string) string {
	begin := scheme.FindString(text)
	return begin + text[max(len(begin), strings.LastIndex(text, "@")+1):]
}

// set reports whether there is one.
func (p Proxy) set() bool { return p.HTTPS != "" || p.HTTP != "" }

// environment are the variables of a container that talks to a store, nil for none. What is in the
// cluster is reached directly, as etcd is: a proxy does not know its Services. So is what gives
// identities to pods.
func (p Proxy) environment(clusterDomain string) []corev1.EnvVar {
	if !p.set() {
		return nil
	}
	var out []corev1.EnvVar
	for _, variable := range []corev1.EnvVar{
		{Name: "HTTPS_PROXY", Value: p.HTTPS},
		{Name: "HTTP_PROXY", Value: p.HTTP},
		{Name: "NO_PROXY", Value: listed(p.No, "localhost", "127.0.0.0/8", "::1", linkLocal, linkLocalIPv6, ".svc", "."+clusterDomain)},
	} {
		if variable.Value != "" {
			out = append(out, variable)
		}
	}
	return out
}

// ports are those of the proxies, sorted.
func (p Proxy) ports() []int64 {
	var out []int64
	for _, text := range []string{p.HTTPS, p.HTTP} {
		if text != "" {
			out = append(out, proxyPort(text))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// proxyPort returns the port of a proxy's URL.
func proxyPort(text string) int64 {
	if !scheme.MatchString(text) {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	if err != nil {
		return 80 // nothing can be reached through it, whatever is open
	}
	if port, err := strconv.ParseUint(at.Port(), 10, 16); err == nil {
		return int64(port)
	}
	switch at.Scheme {
	case "https":
		return 443
	case "socks5", "socks5h":
		return 1080
	}
	return 80
}

// listed adds entries to a list that is separated by commas, each once.
func listed(list string, entries ...string) string {
	var out []string
	for _, entry := range append(strings.Split(list, ","), entries...) {
		if entry = strings.TrimSpace(entry); entry != "" && !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return strings.Join(out, ",")
}

// proxied gives a container the way to a store.
func proxied(in Input, s store, container string) []operation {
	if environment := in.Environment.Proxy.environment(in.Environment.ClusterDomain); environment != nil && s.claim == "" {
		return []operation{add(container+"/env", environment)}
	}
	return nil
}
