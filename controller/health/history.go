package health

import (
	"slices"
	"time"

	"github.com/clusterregistry/operator/controller/probe"
)

const (
	// threshold is how many probes in a row must fail before a condition turns False, and
	// how many must say the same before the text of one that is False changes: two servers
	// behind one address may fail in different ways.
	threshold = 3
	// recovery is how many probes in a row must succeed before a condition that is False
	// turns True: a cluster that answers every now and then is not available.
	recovery = 2
	// doubt is how many probes in a row must fail, and doubtAfter for how long, while this side
	// seems to be cut off, before what was reported before is given up.
	doubt      = 10
	doubtAfter = 5 * time.Minute
)

// certificateMemory is for how many probes a certificate counts after it was last seen.
// Behind one address there may be several API servers, each with its own certificate;
// what is reported is the one that expires first, and may not change with every probe.
const certificateMemory = 32

// history is what is remembered of the probes of one cluster. The zero value
// remembers nothing.
type history struct {
	// last is the newest result; probes says how many there were.
	last   probe.Result
	probes int
	// unreached and unready count results in a row that were so while this side was not
	// isolated, and failed those that were not reached at any time.
	unreached, unready, failed int
	// reached and ready count results in a row that were so.
	reached, ready int
	// alike counts results in a row that say the same.
	alike int
	// certificates are the ends of those that were seen.
	certificates []certificate
}

// certificate is the end of a serving certificate, and the probe that saw it last.
type certificate struct {
	expires time.Time
	seen    int
}

// after returns the history with one more result. What fails while this side is
// isolated says nothing of the cluster: the count of failures begins again.
func (h history) after(result probe.Result, isolated bool) history {
	same := h.probes > 0 && result.Outcome == h.last.Outcome && result.Reason == h.last.Reason && result.Message == h.last.Message
	h.alike = max(1, inARow(h.alike, same))
	h.failed = inARow(h.failed, result.Outcome == probe.Failed)
	h.reached = inARow(h.reached, result.Outcome.Reached())
	h.ready = inARow(h.ready, result.Outcome == probe.Ready)
	h.last = result
	h.probes++
	switch {
	case result.Outcome != probe.Failed:
		h.unreached = 0
	case isolated:
		h.unreached = 0
	default:
		h.unreached++
	}
	switch {
	case result.Outcome != probe.NotReady && result.Outcome != probe.Failed:
		h.unready = 0
	case result.Outcome == probe.NotReady && isolated:
		h.unready = 0
	case result.Outcome == probe.NotReady:
		h.unready++
	}
	h.certificates = slices.DeleteFunc(slices.Clone(h.certificates), func(c certificate) bool {
		return h.probes-c.seen > certificateMemory || c.expires.Equal(result.Expires)
	})
	if !result.Expires.IsZero() {
		h.certificates = append(h.certificates, certificate{expires: result.Expires, seen: h.probes})
	}
	return h
}

func inARow(count int, once bool) int {
	if once {
		return count + 1
	}
	return 0
}

// seeded returns a history that begins with the end of the certificate that was reported
// before this process began; text is in RFC 3339, or empty. Another one of several API
// servers may be asked first now.
func seeded(text string) history {
	expires, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return history{}
	}
	return history{certificates: []certificate{{expires: expires}}}
}

// valid returns the history without certificates that have expired: when the API server
// was reached, they have been renewed.
func (h history) valid(now time.Time) history {
	h.certificates = slices.DeleteFunc(slices.Clone(h.certificates), func(c certificate) bool { return c.expires.Before(now) })
	return h
}

// expires returns when the first of the certificates that were seen lately expires;
// zero when none was.
func (h history) expires() time.Time {
	var first time.Time
	for _, c := range h.certificates {
		if first.IsZero() || c.expires.Before(first) {
			first = c.expires
		}
	}
	return first
}
