package probe

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// nameserver answers every question for an IPv4 address with the next one of a list, and
// the last one for ever. With an empty list, it says that there is no such name.
type nameserver struct {
	// silent has it answer nothing.
	silent bool

	mu        sync.Mutex
	addresses []netip.Addr
	answers   []netip.Addr
}

// resolver starts the nameserver, and returns what asks it alone.
func (n *nameserver) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if !n.silent {
				_, _ = conn.WriteTo(n.answer(buffer[:size]), from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer returns the answer to a message with one question: RFC 1035, 4.1.
func (n *nameserver) answer(query []byte) []byte {
	end := 12 // where the question's name begins
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	out := slices.Clone(query[:end+5])
	copy(out[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, with the question alone
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.addresses) == 0 {
		out[3] |= 3 // NXDOMAIN
		return out
	}
	if kind != 1 {
		return out
	}
	address := n.addresses[0]
	if len(n.addresses) > 1 {
		n.addresses = n.addresses[1:]
	}
	n.answers = append(n.answers, address)
	out[7] = 1
	out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // the name of the question, for no time
	return append(out, address.AsSlice()...)
}

// TestNameThatChanges has a name that leads elsewhere when it is asked for again: each
// connection is checked for itself, in one probe and in the next.
func TestNameThatChanges(t *testing.T) {
	ca := newAuthority(t)
	names := &nameserver{addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")}}
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the second GET needs another connection
		kubernetes("v1.37.1").ServeHTTP(w, r)
	}))
	_, port, err := net.SplitHostPort(endpoint.URL[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	prober := &Prober{loopback: true, resolver: names.resolver(t)}
	target := Target{Field: "spec.endpoints[0]", Endpoint: v1beta1.Endpoint{URL: "https://api.example.com.:" + port, TLSServerName: "api.example.com", CABundle: ca.pem()}}
	if got := prober.Probe(t.Context(), target); got.Outcome != Ready || got.Version != "" {
		t.Errorf("the second connection: %+v", got)
	}
	if got := prober.Probe(t.Context(), target); got.Outcome != NotAsked || got.Reason != ReasonAddressRefused {
		t.Errorf("the second probe: %+v", got)
	}
	if len(names.answers) != 3 {
		t.Errorf("the name was resolved to %v", names.answers)
	}
}

// TestSilentDNS has the probe's time pass before DNS answers: that, and not the API server,
// is what does not answer.
func TestSilentDNS(t *testing.T) {
	proxy, err := ParseProxy("http://proxy.example.com.:3128")
	if err != nil {
		t.Fatal(err)
	}
	prober := &Prober{loopback: true, timeout: 2 * time.Second, resolver: (&nameserver{silent: true}).resolver(t), Proxies: []Proxy{proxy}}
	for _, test := range []struct {
		endpoint     v1beta1.Endpoint
		reason, says string
	}{
		{v1beta1.Endpoint{URL: "https://api.example.com."}, ReasonDNSFailed, "DNS does not resolve the name api.example.com. now."},
		{v1beta1.Endpoint{URL: "https://api.example.com", ProxyURL: proxy.String()}, ReasonProxyFailed, "There is no connection to the proxy http://proxy.example.com.:3128."},
	} {
		if got := prober.Probe(t.Context(), Target{Endpoint: test.endpoint}); got.Outcome != Failed || got.Reason != test.reason || got.Message != test.says {
			t.Errorf("%s: %+v, want %s with %q", test.endpoint.URL, got, test.reason, test.says)
		}
	}
}
