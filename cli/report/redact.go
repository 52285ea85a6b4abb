package report

import (
	"regexp"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// left stands in the place of what may be a credential.
const left = "LEFT OUT: it looks like a credential"

// lastApplied repeats an object as it was sent.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// object returns what of an object may leave the cluster: everything but what looks
// like a credential, by its name or its shape, and what servers keep of writers.
func object(value any) any {
	switch node := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, below := range node {
			text, is := below.(string)
			switch {
			case key == "managedFields" || key == lastApplied:
			case is && validation.IsCredential(key, text):
				out[key] = left
			default:
				out[key] = object(below)
			}
		}
		// An environment variable has its name beside its value.
		name, named := node["name"].(string)
		if text, valued := node["value"].(string); named && valued && validation.IsCredential(name, text) {
			out["value"] = left
		}
		return out
	case []any:
		out := make([]any, len(node))
		flag := ""
		for i, below := range node {
			text, is := below.(string)
			if is && argument(flag, text) {
				out[i] = left
			} else {
				out[i] = object(below)
			}
			flag = ""
			if is && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") {
				flag = strings.TrimLeft(text, "-")
			}
		}
		return out
	case string:
		if validation.IsCredential("", node) {
			return left
		}
	}
	return value
}

// argument reports whether one of a program's arguments may be a credential: by
// itself, or by the flag before it.
func argument(flag, text string) bool {
	name, value, assigned := strings.Cut(strings.TrimLeft(text, "-"), "=")
	if assigned && validation.IsCredential(name, value) {
		return true
	}
	return !strings.HasPrefix(text, "-") && validation.IsCredential(flag, text)
}

var (
	beginKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)
	endKey   = regexp.MustCompile(`-----END [A-Z ]*PRIVATE KEY-----`)
	// setting is a name and a value, as programs log them.
	setting = regexp.MustCompile(`(?i)([a-z][a-z0-9_.-]*)["']?\s*[:=]\s*["']?([^\s"',;}]+)`)
	// bearer is a token behind the word that announces one.
	bearer = regexp.MustCompile(`(?i)\bbearer\s+\S{8,}`)
)

// log returns a program's log without lines that look like credentials, and without
// private keys over several lines.
func log(text string) string {
	var out []string
	inKey := false
	for _, line := range strings.Split(text, "\n") {
		if beginKey.MatchString(line) {
			inKey = true
		}
		switch {
		case inKey, secretive(line):
			out = append(out, left)
		default:
			out = append(out, line)
		}
		if endKey.MatchString(line) {
			inKey = false
		}
	}
	return strings.Join(out, "\n")
}

func secretive(line string) bool {
	if validation.IsCredential("", line) || bearer.MatchString(line) {
		return true
	}
	for _, match := range setting.FindAllStringSubmatch(line, -1) {
		if validation.IsCredential(match[1], match[2]) {
			return true
		}
	}
	return false
}
