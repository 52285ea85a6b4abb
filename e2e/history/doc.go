// Package history records what clients ask of a registry and what they are answered, and
// checks whether one registry that loses nothing could have answered so.
//
// A [Recorder] has clients write, read, list and watch clusters. [Check] takes what it
// recorded, a [History], and returns what no registry may do. It checks, one by one:
//
//   - that writes, reads and lists of each cluster are linearizable, which porcupine decides;
//   - that a write, or a list, which was begun after an answer is not older than that answer,
//     whichever clusters the two are about: the resourceVersion never goes back;
//   - that every watch reported every change, once and in order, and nothing that no
//     client asked for;
//   - that a list shows what the changes up to its resourceVersion make, at the same instant
//     for all clusters, and that no two clusters ever share spec.id;
//   - that every acknowledged write is there at the end, unless a later one replaced it.
//
// What has no answer may have been applied, and may be still. It is kept open to the end,
// unless a watch reported it: then it was applied before that.
package history
