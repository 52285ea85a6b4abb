package contract

import (
	"fmt"
	"strings"
	"time"
)

// DefragmentRequest is what a person asks for by an annotation on a registry: the plugin
// writes it, and the operator reads it.
type DefragmentRequest struct {
	// Time is when it was made; zero means that there is none.
	Time time.Time
	// Member is the one that is meant, empty for all.
	Member string
}

// String returns the annotation's value.
func (r DefragmentRequest) String() string {
	text := r.Time.UTC().Format(time.RFC3339)
	if r.Member != "" {
		text += "," + r.Member
	}
	return text
}

// ParseDefragmentRequest reads the annotation's value, which a person may have written. An
// empty one is no request.
func ParseDefragmentRequest(text string) (DefragmentRequest, error) {
	if text == "" {
		return DefragmentRequest{}, nil
	}
	at, member, named := strings.Cut(text, ",")
	made, err := time.Parse(time.RFC3339, strings.TrimSpace(at))
	member = strings.TrimSpace(member)
	if err != nil || named && member == "" {
		return DefragmentRequest{}, fmt.Errorf("%q is not a time in the form of RFC 3339, such as %s, with a comma and the name of a member after it or not", text, time.Date(2030, 1, 2, 15, 4, 5, 0, time.UTC).Format(time.RFC3339))
	}
	return DefragmentRequest{made, member}, nil
}
