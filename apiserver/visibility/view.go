package visibility

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Parts returns a view of each set alone, in the order of their names: what each shows has an
// index. There are none of a view of all.
func (v View) Parts() []View {
	var parts []View
	for _, set := range sets.List(v.sets) {
		part := v
		part.sets = sets.New(set)
		parts = append(parts, part)
	}
	return parts
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

// view returns what a caller sees, by reviews that are not older than some time. It takes
// half of the request's time at most, so that there is some left to say that it was not enough.
func (p *Policy) view(ctx context.Context, who caller, since time.Time) (v View, err error) {
	wait := p.Patience
	if deadline, limited := ctx.Deadline(); limited {
		wait = min(wait, time.Until(deadline)/2)
	}
	patient, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	done, err := p.turns.take(patient, who.user, keptView{who.key})
	if err == nil {
		v, err = p.look(patient, who, since, done)
	}
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() == nil && (patient.Err() != nil || errors.Is(err, errCrowded)):
		return View{}, slow(wait)
	}
	return View{}, unknown(read, err)
}

// slow is the error of a request whose caller's reviews are not complete in time. It says
// nothing of how many there are, and clients such as client-go's retry it automatically.
func slow(wait time.Duration) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf("it is not known which clusters the caller may get: the reviews of %[1]s/%[2]s for each ClusterSet are not complete after %[3]s; those that are made are kept, so try again until they are; who may get %[1]s/%[2]s without a name needs one alone", resource, subresource, wait.Round(time.Second)))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// round is the key of when the reviews of all sets began that are not complete yet, among what
// is kept.
type round struct{ caller string }

// look finds out what a caller sees whose turn it is, and ends that.
func (p *Policy) look(ctx context.Context, who caller, since time.Time, done func(error)) (v View, err error) {
	defer func() { done(err) }()
	if kept, ok := p.known.Get(keptView{who.key}); ok {
		if v := kept.(View); !v.asked.Before(since) && time.Now().Before(v.until) {
			return v, nil
		}
	}
	of := age{since: since, round: time.Now()}
	if begun, ok := p.known.Get(round{who.key}); ok && time.Since(begun.(time.Time)) < p.longest() {
		of.round = begun.(time.Time)
	}
	if v, err = p.review(ctx, who, of); err != nil {
		p.known.Add(round{who.key}, of.round)
		return View{}, err
	}
	p.known.Remove(round{who.key})
	if p.Periods.Cache > 0 {
		p.known.Add(keptView{who.key}, v)
	}
	return v, nil
}

// review finds out what a caller sees by reviews that are as old as they may be. What it finds
// is kept as long as an answer is that has just come, or one that is older than the round.
func (p *Policy) review(ctx context.Context, who caller, of age) (View, error) {
	everything, err := p.ask(ctx, who, read, "", of)
	if err != nil {
		return View{}, err
	}
	v := View{who: who, All: everything.allowed, forever: everything.forever}
	answers := []answer{everything}
	if !v.All {
		names, found, err := p.narrow(ctx, who, of)
		if err != nil {
			return View{}, err
		}
		v.sets = sets.New[string]()
		for i, name := range names {
			if found[i].allowed {
				v.sets.Insert(name)
			}
		}
		answers = append(answers, found...)
	}
	now := time.Now()
	v.asked, v.until = now, now.Add(p.Periods.Cache)
	for _, on := range answers {
		if on.asked.Before(v.asked) {
			v.asked = on.asked
		}
		if until := on.asked.Add(p.lasts(on)); on.asked.Before(of.round) && until.Before(v.until) {
			v.until = until
		}
	}
	return v, nil
}

// narrow returns all sets, and what the reviews of each have found.
func (p *Policy) narrow(ctx context.Context, who caller, of age) ([]string, []answer, error) {
	names, err := p.Sets(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list the ClusterSets: %w", err)
	}
	p.sets.Store(int64(len(names)))
	answers := make([]answer, len(names))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() (err error) {
			answers[i], err = p.ask(asking, who, read, name, of)
			return err
		})
	}
	return names, answers, group.Wait()
}

// unknown is the error of a request whose review failed. Nothing is hidden instead.
func unknown(verb string, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("it is not known which clusters the caller may %s: the review of %s/%s failed: %v; try again", verb, resource, subresource, err))
}
