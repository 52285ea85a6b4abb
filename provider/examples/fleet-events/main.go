// Command fleet-events prints a line for each cluster that is added to a registry, changed
// or removed, exactly once: "added NAME UID RESOURCEVERSION". It keeps running through upgrades of
// the registry, rotations of its CA and a restore from a backup.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/client/informers"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the file that says where the registry is; changes are followed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "fleet-events:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	transport := &followed{path: kubeconfig}
	if _, _, err := transport.now(); err != nil {
		return err
	}
	client, err := versioned.NewForConfig(&rest.Config{Host: "https://registry", Transport: transport})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := factory.Clusterregistry().V1beta1().Clusters().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { say("added", now) },
		UpdateFunc: func(old, now any) { changed(old.(*v1beta1.Cluster), now.(*v1beta1.Cluster)) },
		DeleteFunc: func(last any) {
			if missed, is := last.(cache.DeletedFinalStateUnknown); is {
				last = missed.Obj // removed while there was no watch: the last state that was seen
			}
			say("removed", last)
		},
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// changed tells two clusters of one name apart, and leaves out what is not news: a list
// after an interruption, as of a registry that was restored, has the same clusters again.
func changed(old, now *v1beta1.Cluster) {
	switch {
	case old.UID != now.UID:
		say("removed", old)
		say("added", now)
	case old.ResourceVersion != now.ResourceVersion:
		say("changed", now)
	}
}

// say is where a controller would act. The informer calls it for one event after the other.
func say(event string, object any) {
	cluster := object.(*v1beta1.Cluster)
	fmt.Println(event, cluster.Name, cluster.UID, cluster.ResourceVersion)
}
