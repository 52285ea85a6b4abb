package controlplane

import "testing"

func TestURL(t *testing.T) {
	for _, test := range []struct {
		host string
		port int64
		want string
		ok   bool
	}{
		{"east.example.com", 6443, "https://east.example.com:6443", true},
		{"10.0.0.1", 443, "https://10.0.0.1:443", true},
		{"2001:db8::1", 6443, "https://[2001:db8::1]:6443", true},
		{"[2001:db8::1]", 6443, "https://[2001:db8::1]:6443", true},
		{"https://ABCDEF0123456789.gr7.us-east-1.eks.amazonaws.com", 443, "https://abcdef0123456789.gr7.us-east-1.eks.amazonaws.com:443", true},
		{"HTTPS://east.example.com/", 443, "https://east.example.com:443", true},
		{"https://east.example.com:6443", 6443, "https://east.example.com:6443", true},
		{"https://[2001:db8::1]", 443, "https://[2001:db8::1]:443", true},
		{"https://[2001:db8::1]:443", 443, "https://[2001:db8::1]:443", true},
		{"", 6443, "", true},
		{"east", 0, "", true},
		{"east", -1, "", false},
		{"east", 65536, "", false},
		{"evil/path", 6443, "", false},
		{"a@evil", 6443, "", false},
		{"http://east.example.com", 443, "", false},
		{"https://", 443, "", false},
		{"https://https://east.example.com", 443, "", false},
		{"https://a@evil", 443, "", false},
		{"https://evil/path", 443, "", false},
		{"https://evil?x", 443, "", false},
		{"https://east.example.com:8443", 443, "", false},
	} {
		got, err := URL(test.host, test.port)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%s, %d: %q, %v", test.host, test.port, got, err)
		}
	}
}
