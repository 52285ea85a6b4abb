package report

import (
	"regexp"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// left stands in the place of what may be a credential.
const left = "LEFT OUT: it looks like a credential"

// repeated stands in the place of an annotation that may repeat a whole object.
const repeated = "LEFT OUT: it may repeat an object, with credentials"

// longAnnotation is from how many bytes on an annotation may repeat an object.
const longAnnotation = 1024

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
			case key == "annotations":
				out[key] = annotations(below)
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
		// Messages, scripts and annotations hold what programs log, and credentials in
		// the same forms.
		if validation.IsCredential("", node) {
			return left
		}
		return log(node)
	}
	return value
}

// annotations returns annotations without those in which tools such as kubectl, kapp
// and Rancher keep the object as it was sent.
func annotations(value any) any {
	node, is := object(value).(map[string]any)
	if !is {
		return object(value)
	}
	for key, below := range node {
		text, is := below.(string)
		if start := strings.TrimSpace(text); is && (len(text) > longAnnotation || strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[")) {
			node[key] = repeated
		}
	}
	return node
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
	// keyLine is a line of a private key in PEM.
	keyLine = regexp.MustCompile(`[A-Za-z0-9+/]{16,}={0,2}\s*$`)
	// setting is a name and a value, as programs log them, perhaps in JSON in a string.
	setting = regexp.MustCompile(`(?i)([a-z][a-z0-9_.-]*)\\*["']?\s*[:=]\s*\\*["']?([^\s"',;}]+)`)
	// flagged is a flag with its value behind it, in a command line or a list.
	flagged = regexp.MustCompile(`(?i)(?:^|[\s"'\[=,(])--?([a-z][a-z0-9_.-]*)\\*["']?[\s,]+\\*["']?([^\s"',\\-][^\s"',]*)`)
	// bearer is a token behind the word that announces one.
	bearer = regexp.MustCompile(`(?i)\bbearer\s+\S{8,}`)
	// signed are URLs that give access to whoever has them: with a user, which may be a
	// token, or with a signature.
	signed = regexp.MustCompile(`(?i)://[^/\s?#@]+@|[?&](?:sig|signature|x-(?:amz|goog)-[a-z-]+|[a-z0-9_.-]*token)=`)
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
		ends := endKey.MatchString(line)
		if ends && !inKey {
			// The beginning of the log is somewhere in a key.
			for i := len(out) - 1; i >= 0 && keyLine.MatchString(out[i]); i-- {
				out[i] = left
			}
		}
		switch {
		case inKey, ends, secretive(line):
			out = append(out, left)
		default:
			out = append(out, line)
		}
		if ends {
			inKey = false
		}
	}
	return strings.Join(out, "\n")
}

func secretive(line string) bool {
	return validation.IsCredential("", line) || bearer.MatchString(line) || signed.MatchString(line) || named(setting, line) || named(flagged, line)
}

// named reports whether a pattern finds the name and the value of a credential in a
// line. What follows a name can be a name itself, as in "failed: password=x".
func named(pattern *regexp.Regexp, line string) bool {
	for {
		match := pattern.FindStringSubmatchIndex(line)
		if match == nil {
			return false
		}
		if validation.IsCredential(line[match[2]:match[3]], line[match[4]:match[5]]) {
			return true
		}
		line = line[match[3]:]
	}
}
