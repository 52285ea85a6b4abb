package join

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/member"
)

// accessName is the name of what --with-access enters.
const accessName = "users"

// accessOf returns the program of a context's user, by its name alone, without variables that
// look like secrets. Arguments that do are refused by the registry's own rules.
func accessOf(found *member.Member) (v1beta1.Access, error) {
	if found.Exec == nil {
		return v1beta1.Access{}, command.Refusedf("the user of context %q has no exec program, and other credentials are never copied: leave out --with-access, and describe the access by hand with \"kubectl edit crc\"", command.Plain(found.Context))
	}
	exec := &v1beta1.ExecAccess{
		// Its path is one of this computer.
		APIVersion: found.Exec.APIVersion, Command: command.ProgramName(found.Exec.Command), Args: found.Exec.Args,
		InstallHint: found.Exec.InstallHint, ProvideClusterInfo: found.Exec.ProvideClusterInfo,
		InteractiveMode: v1beta1.InteractiveMode(found.Exec.InteractiveMode),
	}
	for _, variable := range found.Exec.Env {
		if !validation.IsCredential(variable.Name, variable.Value) {
			exec.Env = append(exec.Env, v1beta1.ExecEnvVar{Name: variable.Name, Value: variable.Value})
		}
	}
	return v1beta1.Access{Name: accessName, Audience: v1beta1.AudienceUser, Exec: exec}, nil
}

// showAccess shows the program that is to be entered, and asks.
func (j *joiner) showAccess(ctx context.Context, wanted *v1beta1.Cluster) error {
	if len(wanted.Spec.Access) == 0 {
		return nil
	}
	exec := wanted.Spec.Access[0].Exec
	fmt.Fprintf(j.env.ErrOut, "Access %q, readable by everyone who may read the registry:\n  %s %s\n", accessName, command.Plain(exec.Command), command.Plain(strings.Join(exec.Args, " ")))
	for _, variable := range exec.Env {
		fmt.Fprintf(j.env.ErrOut, "  with %s=%s\n", command.Plain(variable.Name), command.Plain(variable.Value))
	}
	if exec.Interactive() != v1beta1.InteractiveIfAvailable {
		fmt.Fprintf(j.env.ErrOut, "  with interactiveMode %s\n", command.Plain(string(exec.InteractiveMode)))
	}
	if exec.InstallHint != "" {
		fmt.Fprintf(j.env.ErrOut, "  with the hint: %s\n", command.Plain(exec.InstallHint))
	}
	if j.yes || j.dryRun != "none" {
		return nil
	}
	return j.env.Confirm(ctx, "Enter it?", "--yes")
}
