package kubeconfig

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command"
)

func (b *builder) run(ctx context.Context) error {
	client, err := b.check()
	if err != nil {
		return err
	}
	clusters, complete, err := b.list(ctx)
	if err != nil {
		return err
	}
	origin, err := b.registry()
	if err != nil {
		return err
	}
	origin.Scope = scopeOf(b.names, b.selector)
	entries, refused := b.entries(clusters, client)
	named := b.merge
	if named == defaultFile {
		named = clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	}
	path := ""
	if named != "" {
		path = target(named)
	}
	planned := func() (*clientcmdapi.Config, plan, error) {
		config, others, err := read(path)
		if err != nil {
			return nil, plan{}, err
		}
		return config, makePlan(config, others, entries, refused, origin, complete && path != ""), nil
	}
	config, plan, err := planned()
	if err != nil {
		return err
	}
	plan.show(b.env.ErrOut)
	agreed, err := plan.digest(origin)
	if err != nil {
		return err
	}
	if b.dryRun.Client() {
		fmt.Fprintf(b.env.ErrOut, "digest of what is to be confirmed: %s\n", agreed)
		return plan.verdict("")
	}
	if err := b.confirm(ctx, plan, agreed); err != nil {
		return err
	}
	if path == "" {
		return b.print(config, plan, origin)
	}
	unlock, err := lock(ctx, named, path)
	if err != nil {
		return err
	}
	defer unlock()
	// What a person has agreed to is for the file that they were shown.
	config, plan, err = planned()
	if err != nil {
		return err
	}
	if now, err := plan.digest(origin); err != nil || now != agreed {
		return command.Refusedf("the file %s was changed in the meantime: nothing was written; run this again", path)
	}
	if err := plan.apply(config, origin); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return command.Refusedf("interrupted: nothing was changed")
	}
	if err := save(path, config); err != nil {
		return err
	}
	fmt.Fprintf(b.env.Out, "%s: %d new or changed, %d unchanged, %d removed\n", path, len(plan.changes), len(plan.same), len(plan.pruned))
	return plan.verdict(othersDone)
}

// confirm returns nil when a person has agreed to the changes.
func (b *builder) confirm(ctx context.Context, p plan, agreed string) error {
	switch {
	case !p.asks():
		// A script that runs again with the digest of before has nothing to confirm.
		return nil
	case b.accept != "" && b.accept != agreed:
		return command.Refusedf("what is to be confirmed has the digest %s, and --accept has %s: nothing was changed; check what is shown above, then use that digest", agreed, command.Plain(b.accept))
	case b.accept != "":
		return nil
	}
	return b.env.Confirm(ctx, p.question(), "--accept="+agreed)
}

// print writes the kubeconfig to the standard output.
func (b *builder) print(config *clientcmdapi.Config, p plan, origin mark) error {
	if err := p.apply(config, origin); err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if _, err := b.env.Out.Write(content); err != nil {
		return err
	}
	return p.verdict(othersDone)
}

// othersDone says what became of the clusters that were not refused.
const othersDone = "; the others are done"

// verdict is an error when clusters were refused, which ends with what became of the
// others.
func (p plan) verdict(others string) error {
	if len(p.refused) == 0 {
		return nil
	}
	return command.Attentionf("%d refused, see above%s", len(p.refused), others)
}
