module github.com/clusterregistry/operator/hack/components/pause

go 1.26.0
