# The workers, the starter, and the development vendors, with the libraries that they load, in
# an image of nothing else. The revision is the build of Worker Versioning.
#
#   docker build --build-arg REVISION=$(git rev-parse HEAD) -t dendra-jobs .
#   docker run --rm dendra-jobs /bin/starter --help

FROM golang:1.26.8 AS build
ENV GOFLAGS='-trimpath -buildvcs=false' GOCACHE=/go/build-cache
WORKDIR /src
COPY . .
# Without a revision, a sum of the sources tells builds apart.
ARG REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/build-cache \
    module=github.com/dendrascience/dendra-jobs && \
    revision=${REVISION:-src-$(find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-36)} && \
    CGO_ENABLED=0 go build -ldflags "-s -w -X $module/workers.revision=$revision -X $module/starter/cli.revision=$revision" -o /out/ ./workers/backend ./workers/extract ./workers/load ./starter
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/build-cache \
    cd devstack && go build -tags netgo,osusergo,sqlite_omit_load_extension -ldflags '-s -w -extldflags -static' -o /out/ ./cmd/vendors
RUN mkdir -p /var/lib/dendra
# Image processes load libjpeg-turbo and libwebp, and so the C library.
RUN cd /usr/lib/*-linux-gnu && ls libturbojpeg.so.0 libwebp.so libwebpdemux.so || \
    { apt-get update && apt-get install --yes --no-install-recommends libturbojpeg0 libwebp-dev; }
RUN cd /usr/lib/*-linux-gnu && loaded=$(ls $PWD/libturbojpeg.so.0 $PWD/libwebp.so $PWD/libwebpdemux.so) && mkdir /libraries && \
    { echo "$loaded"; ldd /out/backend $loaded; } | grep -o '/[^ :]*' | grep -v '^/out/' | sort -u | \
    xargs cp --parents --dereference --target-directory /libraries

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
# Jobs may name time zones.
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
ENV ZONEINFO=/zoneinfo.zip
# A new volume there belongs to the user below.
COPY --from=build --chown=65532:65532 /var/lib/dendra /var/lib/dendra
COPY --from=build /libraries/ /
COPY --from=build /out/ /bin/
# Nobody of the host, and no root.
USER 65532:65532
EXPOSE 8080
# A stop is graceful: the workers finish or hand back what they run.
STOPSIGNAL SIGTERM
CMD ["/bin/backend", "--health-address", "0.0.0.0:8080"]
