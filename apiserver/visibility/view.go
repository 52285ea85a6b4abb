package visibility

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/storage"
)

// read is the verb that decides on what is seen.
const read = "get"

// View is which clusters a caller sees.
type View struct {
	// All says that it sees all; otherwise it sees those in some sets.
	All  bool
	sets sets.Set[string]
	// who is the caller. Whoever is known to see all, always, is not recorded.
	who     caller
	forever bool
	// asked is when the oldest of its reviews began, and until when it is kept.
	asked, until time.Time
}

// Restrict has a predicate select nothing that the caller does not see.
func (v View) Restrict(p storage.SelectionPredicate) storage.SelectionPredicate {
	if v.All {
		return p
	}
	asked := p.Field
	if asked == nil {
		asked = fields.Everything()
	}
	p.Field = fields.AndSelectors(inSets(v.sets), asked)
	return p
}

// Same reports whether another view shows the same.
func (v View) Same(other View) bool { return v.hash() == other.hash() }

// Forever reports whether the caller will always see all.
func (v View) Forever() bool { return v.forever }

// hash returns a short form of what is seen.
func (v View) hash() string {
	content := "all"
	if !v.All {
		content = "sets " + strings.Join(sets.List(v.sets), " ")
	}
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// View returns what the caller of a context sees, by reviews that may be as old as they
// are kept.
func (p *Policy) View(ctx context.Context) (View, error) {
	who, err := callerOf(ctx)
	if err != nil {
		return View{}, unknown(read, err)
	}
	return p.view(ctx, who, time.Time{})
}

// keptView is the key of a view among what is kept.
type keptView struct{ caller string }

// view returns what a caller sees, by reviews that are not older than some time.
func (p *Policy) view(ctx context.Context, who caller, since time.Time) (View, error) {
	done, err := p.turns.take(ctx, who.key, keptView{who.key})
	if err != nil {
		return View{}, unknown(read, err)
	}
	v, err := p.look(ctx, who, since, done)
	if err != nil {
		return View{}, unknown(read, err)
	}
	return v, nil
}

// look finds out what a caller sees whose turn it is, and ends that.
func (p *Policy) look(ctx context.Context, who caller, since time.Time, done func(error)) (v View, err error) {
	defer func() { done(err) }()
	if kept, ok := p.known.Get(keptView{who.key}); ok {
		if v := kept.(View); !v.asked.Before(since) && time.Now().Before(v.until) {
			return v, nil
		}
	}
	v = View{who: who, asked: time.Now(), until: time.Now().Add(p.Periods.Cache)}
	everything, err := p.ask(ctx, who, read, "", since)
	if err != nil {
		return View{}, err
	}
	v.rest(everything, p.Periods)
	if everything.allowed {
		v.All, v.forever = true, everything.forever
	} else if err := p.narrow(ctx, &v, since); err != nil {
		return View{}, err
	}
	if p.Periods.Cache > 0 {
		p.known.Add(keptView{who.key}, v)
	}
	return v, nil
}

// narrow fills in the sets of a view.
func (p *Policy) narrow(ctx context.Context, v *View, since time.Time) error {
	names, err := p.Sets(ctx)
	if err != nil {
		return fmt.Errorf("list the ClusterSets: %w", err)
	}
	answers := make([]answer, len(names))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() (err error) {
			answers[i], err = p.ask(asking, v.who, read, name, since)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	v.sets = sets.New[string]()
	for i, name := range names {
		v.rest(answers[i], p.Periods)
		if answers[i].allowed {
			v.sets.Insert(name)
		}
	}
	return nil
}

// rest has a view be no fresher than an answer that it rests on, and kept no longer than
// that one.
func (v *View) rest(on answer, periods Periods) {
	if on.asked.Before(v.asked) {
		v.asked = on.asked
	}
	if until := on.asked.Add(periods.lasts(on)); until.Before(v.until) {
		v.until = until
	}
}

// unknown is the error of a request whose review failed. Nothing is hidden instead.
func unknown(verb string, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("it is not known which clusters the caller may %s: the review of %s/%s failed: %v; try again", verb, resource, subresource, err))
}
