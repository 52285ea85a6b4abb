package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterregistry/operator/helper/backup/layout"
	"github.com/clusterregistry/operator/helper/backup/store"
)

// Listing is what a lineage has.
type Listing struct {
	// Backups are those that can be read, the newest first.
	Backups []layout.Backup
	// Unreadable says of the others, in their order, why they can't be used. They are
	// neither restored nor removed.
	Unreadable []Unreadable

	contents layout.Contents
}

// Unreadable is a backup that can't be used.
type Unreadable struct {
	Name, Why string
}

// List returns what the lineage has.
func (a Archive) List(ctx context.Context) (Listing, error) {
	found, err := a.Store.List(ctx, a.Lineage.Directory())
	if err != nil {
		return Listing{}, err
	}
	objects := make([]layout.Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, layout.Object{Key: o.Key, ModTime: o.ModTime})
	}
	out := Listing{contents: a.Lineage.Read(objects)}
	for _, name := range out.contents.Names() {
		b, err := a.read(ctx, name, out.contents.HasVerification(name))
		why := ""
		switch unusable := new(unusableError); {
		case errors.Is(err, store.ErrAbsent):
			continue // it was removed meanwhile
		case errors.As(err, &unusable):
			why = unusable.Error()
		case err != nil:
			return Listing{}, err
		case !out.contents.HasSnapshot(b.Manifest):
			why = "its snapshot is gone"
		}
		if why != "" {
			out.Unreadable = append(out.Unreadable, Unreadable{name, why})
			continue
		}
		out.Backups = append(out.Backups, b)
	}
	out.Backups = layout.NewestFirst(out.Backups)
	return out, nil
}

// unusableError says why a manifest can't be used.
type unusableError struct{ error }

// read returns the backup of a name. The error is store.ErrAbsent when there is none, and
// an unusableError when its manifest can't be used.
func (a Archive) read(ctx context.Context, name string, verified bool) (layout.Backup, error) {
	content, err := a.Store.Read(ctx, a.Lineage.Manifest(name), layout.MaxBytes)
	if err != nil {
		return layout.Backup{}, err
	}
	m, err := layout.DecodeManifest(a.Lineage, name, content)
	if err != nil {
		return layout.Backup{}, &unusableError{fmt.Errorf("%s: %w", a.Store.Location(a.Lineage.Manifest(name)), err)}
	}
	b := layout.Backup{Manifest: m}
	if !verified {
		return b, nil
	}
	content, err = a.Store.Read(ctx, a.Lineage.Verification(name), layout.MaxBytes)
	switch {
	case err == nil:
		b.Verification = layout.DecodeVerification(m, content)
	case !errors.Is(err, store.ErrAbsent):
		return layout.Backup{}, err
	}
	return b, nil
}

// Find returns the backup of a name, as its manifest and its last verification say.
func (a Archive) Find(ctx context.Context, name string) (layout.Backup, error) {
	if err := layout.CheckName(name); err != nil {
		return layout.Backup{}, err
	}
	return a.read(ctx, name, true)
}

// Chosen is the backup that a choice means.
type Chosen struct {
	layout.Backup
	// PassedOver says, of those that are newer and would have been meant, why each can't be
	// used. It begins with the name.
	PassedOver []string
}

// Choose returns the backup that a choice means.
func (a Archive) Choose(ctx context.Context, choice layout.Choice) (Chosen, error) {
	have, err := a.List(ctx)
	if err != nil {
		return Chosen{}, err
	}
	for _, u := range have.Unreadable {
		if u.Name == choice.Name {
			return Chosen{}, fmt.Errorf("backup %s can't be used: %s", u.Name, u.Why)
		}
	}
	b, err := choice.Of(have.Backups)
	over := have.passedOver(choice, b)
	if err != nil {
		err = fmt.Errorf("in %s: %w", a.Store.Location(a.Lineage.Directory()), err)
		if len(over) > 0 {
			err = fmt.Errorf("%w; can't be used: %s", err, strings.Join(over, "; "))
		}
		return Chosen{}, err
	}
	return Chosen{b, over}, nil
}

// passedOver says which backups a choice would have meant, were they usable, rather than the one
// that it means; all when that is none. When one was taken whose manifest can't be read, only
// the store knows, by when it was written.
func (have Listing) passedOver(choice layout.Choice, chosen layout.Backup) []string {
	if choice.Name != "" {
		return nil
	}
	before := func(at time.Time) bool { return choice.Before.IsZero() || !at.After(choice.Before) }
	var out []string
	for _, b := range have.Backups { // the newest first
		if b.Name == chosen.Name {
			break
		}
		if b.Damaged() && before(b.Time) {
			out = append(out, b.Name+" is damaged: "+b.Verification.Damage)
		}
	}
	for _, u := range have.Unreadable {
		if written := have.contents.Written(u.Name); before(written) && !written.Before(have.contents.Written(chosen.Name)) {
			out = append(out, u.Name+": "+u.Why)
		}
	}
	return out
}
