# The workers and the starter: static binaries in an image of nothing else.
#
#   docker build -t dendra-jobs .
#   docker run --rm dendra-jobs /bin/starter --help

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' \
    go build -ldflags '-s -w' -o /out/ ./workers/backend ./workers/extract ./workers/load ./starter

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
# Jobs may name time zones.
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
ENV ZONEINFO=/zoneinfo.zip
COPY --from=build /out/ /bin/
# Nobody of the host, and no root.
USER 65532:65532
EXPOSE 8080
# A stop is graceful: the workers finish or hand back what they run.
STOPSIGNAL SIGTERM
CMD ["/bin/backend", "--health-address", "0.0.0.0:8080"]
