package visibility

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Attempts is how often a request looks again when what its caller sees changes meanwhile.
const Attempts = 5

// Confirm reports whether what a view shows is what the record says, by a read that begins
// after it was called, and since which revision. What was read with the view before that
// may be handed out then: whatever changes the record later does so at a later revision.
func (p *Policy) Confirm(ctx context.Context, v View) (since uint64, confirmed bool, err error) {
	if v.forever {
		return 0, true, nil
	}
	rec, found, err := p.Records.latest(ctx, v.who.key)
	if err != nil {
		return 0, false, unavailable(err)
	}
	if !found || rec.sets != v.hash() {
		return rec.since, false, nil
	}
	// Many a client only lists, or watches for less than a recheck takes.
	p.Records.renew(ctx, v.who.key, rec)
	return rec.since, true, nil
}

// Settle returns what a caller sees and since which revision, after it has had the record
// say so. When the record says something else, the caller's sets have changed: either this
// server is the first to notice, or another has written it and this one goes by reviews of
// before. So nothing that was asked before this server first read the record counts then,
// but all that was asked since: a retry continues where a request ran out of time.
func (p *Policy) Settle(ctx context.Context, of View) (View, uint64, error) {
	who := of.who
	v, err := p.view(ctx, who, time.Time{})
	if err != nil {
		return View{}, 0, err
	}
	for range Attempts {
		if v.forever {
			return v, 0, nil
		}
		var rec record
		if v, rec, err = p.settle(ctx, who, v); err == nil {
			return v, rec.since, nil
		}
		if !errors.Is(err, errRaced) {
			return View{}, 0, unavailable(err)
		}
	}
	return View{}, 0, Unsettled()
}

// settle tries once.
func (p *Policy) settle(ctx context.Context, who caller, v View) (View, record, error) {
	rec, found, err := p.Records.read(ctx, who.key)
	if err != nil {
		return v, rec, err
	}
	if !found {
		rec, err = p.Records.create(ctx, who.key, v.hash())
		return v, rec, err
	}
	if rec.sets == v.hash() {
		p.Records.renew(ctx, who.key, rec)
		return v, rec, nil
	}
	if v, err = p.view(ctx, who, p.firstRead(who, rec)); err != nil || v.forever || rec.sets == v.hash() {
		return v, rec, err
	}
	if rec, err = p.Records.replace(ctx, who.key, rec, record{sets: v.hash()}); err == nil {
		changes.Inc()
	}
	return v, rec, err
}

// doubt is the key of when a record was first found to differ among what is kept, and found
// what is kept: until another one is written.
type (
	doubt struct{ record string }
	found struct {
		since uint64
		at    time.Time
	}
)

// firstRead returns when this server first found a record to say something else than its
// reviews, which is after the record was written. That may be now.
func (p *Policy) firstRead(who caller, rec record) time.Time {
	if kept, ok := p.known.Get(doubt{who.key}); ok && kept.(found).since == rec.since {
		return kept.(found).at
	}
	now := time.Now()
	p.known.Add(doubt{who.key}, found{rec.since, now})
	return now
}

// Unsettled is the error of a request during which what its caller sees has changed again
// and again.
func Unsettled() error {
	return apierrors.NewServiceUnavailable("the ClusterSets that the caller sees change again and again, as two servers with reviews of different ages may see for some seconds; try again")
}

// unavailable is the error of a request whose caller's record can't be read or written.
func unavailable(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("it is not known whether the ClusterSets that the caller sees have changed: %v; try again", err))
}
