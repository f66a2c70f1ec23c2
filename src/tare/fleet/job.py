"""The script of a Job: runs tare in the namespaces of the node that its privileged pod is on (hostPID).

Its arguments are the program, the result as the pod names it, the result as the node names it, and options of
`tare run`. A result that was begun is gone on with.
"""

SCRIPT = """\
set -eu
tare=$1 seen=$2 file=$3
shift 3
# The node does not have the account's token: kubectl reads it, and its renewals, from this pod's root.
# /var/run is a link in most images, which would lead to the node's /run from there.
there=/var/run/secrets/kubernetes.io/serviceaccount
account=/proc/$$/root$(cd "$there" 2>/dev/null && pwd -P || echo "$there")
cat >/scratch/kubeconfig <<END
apiVersion: v1
kind: Config
clusters:
- name: here
  cluster:
    server: "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"
    certificate-authority: $account/ca.crt
users:
- {name: tare, user: {tokenFile: $account/token}}
contexts:
- {name: here, context: {cluster: here, user: tare, namespace: $TARE_NAMESPACE}}
current-context: here
END
if [ -e "$seen" ]; then
    set -- --resume "$file"
else
    set -- --output "$file" "$@"
fi
export KUBECONFIG=/proc/$$/root/scratch/kubeconfig
nsenter --target 1 --mount --uts --ipc --net --cgroup -- "$tare" run "$@" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null || :' TERM INT
code=0
while :; do
    wait "$child" && code=0 || code=$?
    kill -0 "$child" 2>/dev/null || break
done
exit "$code"
"""
