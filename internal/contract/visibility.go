package contract

// HidingFlag is the argument of a registry's servers that hide clusters from those who may not see
// their ClusterSets. Of the arguments of a Deployment that the operator caches, it is the only one
// that is left.
const HidingFlag = "--visibility=ClusterSets"
