// Package diagnose says in a sentence why a pod, a Job, a workload or a Certificate
// is not ready: what is wrong, in the words of whoever knows (kubelet, the scheduler,
// cert-manager, the container itself), and what to change where that is known.
//
// It knows nothing of a registry's stages or conditions. Functions return a text for
// a condition's message, empty when nothing is wrong. What can be told from an object
// alone is a plain function; a Diagnoser reads what explains it, such as events.
// Nothing here writes, and a sentence is for people: callers decide by Ready, Failure,
// CrashLooping, EtcdEnd and GuardRefuses.
package diagnose
