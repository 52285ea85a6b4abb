# The same programs as "make build", for those who have Docker or buildah:
#   docker build --target clusterregistry-operator .
# Outside a git checkout pass --build-arg VERSION=... COMMIT=... COMMIT_DATE=...
FROM golang:1.26 AS build
ARG VERSION COMMIT COMMIT_DATE
WORKDIR /src
COPY go.mod go.sum ./
COPY apis/clusterregistry/go.mod apis/clusterregistry/go.sum apis/clusterregistry/
COPY client/go.mod client/go.sum client/
RUN go mod download
COPY . .
RUN hack/run build /out

FROM gcr.io/distroless/static:nonroot AS clusterregistry-apiserver
COPY --from=build /out/clusterregistry-apiserver /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/clusterregistry-apiserver"]

FROM gcr.io/distroless/static:nonroot AS clusterregistry-helper
COPY --from=build /out/clusterregistry-helper /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/clusterregistry-helper"]

FROM gcr.io/distroless/static:nonroot AS clusterregistry-controller
COPY --from=build /out/clusterregistry-controller /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/clusterregistry-controller"]

FROM gcr.io/distroless/static:nonroot AS clusterregistry-backup
COPY --from=build /out/clusterregistry-backup /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/clusterregistry-backup"]

FROM gcr.io/distroless/static:nonroot AS clusterregistry-operator
COPY --from=build /out/clusterregistry-operator /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/clusterregistry-operator"]
