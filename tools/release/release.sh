#!/bin/bash
# Makes a release of the present commit: make release calls it with the packages of the programs.
# BUILD is the command that builds, VERSION the version, UNLICENSED the modules without a licence.
set -eu -o pipefail

if [ -n "$(git status --porcelain)" ]; then
	echo 'a release is of a commit: commit or stash what has changed first' >&2
	exit 1
fi
tools=$PWD/bin/tools/release
name=dendra-jobs-$VERSION-linux-$(go env GOARCH)
out=$PWD/bin/release/$name
# A C compiler that is there by chance does not change the programs.
export GOOS=linux CGO_ENABLED=0

echo '   modules are what go.sum says'
go mod verify
rm -rf bin/release
mkdir -p "$out"
echo '   programs'
eval "$BUILD" -o "$out/" "$@"

echo '   the same once more, from the commit alone, elsewhere and without a build cache'
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
mkdir "$again/source" "$again/programs"
git archive HEAD | tar --extract --directory="$again/source"
(cd "$again/source" && export GOCACHE="$again/cache" && eval "$BUILD" -o "$again/programs/" "$@")
for program in "$again"/programs/*; do
	cmp "$program" "$out/${program##*/}"
done

echo '   licences, SBOMs, archive, checksums'
cp LICENSE CHANGELOG.md "$out/"
"$tools/licenses" -without "$UNLICENSED" "$@" >"$out/NOTICE"
for program in "$again"/programs/*; do
	"$tools/cyclonedx-gomod" bin -json -std -noserial -notimestamp -version "$VERSION" \
		-output "bin/release/${program##*/}.cdx.json" "$program"
done
tar --create --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner \
	--directory=bin/release "$name" | gzip --no-name >"bin/release/$name.tar.gz"
(cd bin/release && sha256sum ./*.tar.gz ./*.cdx.json "$name"/* >SHA256SUMS)

echo '   known vulnerabilities'
for program in "$again"/programs/*; do
	status=0
	"$tools/govulncheck" -mode binary "$program" || status=$?
	case $status in
	0) ;;
	3) exit 3 ;; # There are some, and govulncheck has listed them.
	*)
		echo '   NOT CHECKED: govulncheck failed as it says above; it needs its database of vulnerabilities' >&2
		break
		;;
	esac
done
cat bin/release/SHA256SUMS
