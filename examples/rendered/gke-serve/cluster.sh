#!/bin/bash
# systole: serve-8b on gke, workload 111111111111
# Makes the cluster, or what is missing of it; may be run again.
set -euo pipefail
account=$(gcloud auth list --filter=status:ACTIVE --format='value(account)')
if [ -z "$account" ]; then
  echo 'gcloud knows no account: gcloud auth login' >&2
  exit 3
fi
run=serve-8b
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
there() { # whether what a command describes is there, and $said what it says; ends the script where nobody knows
  said=$("$@" 2>"$errors") && return
  case $(cat "$errors") in
  *NOT_FOUND* | *'was not found'* | *'could not be found'* | *'does not exist'*) return 1 ;;
  *'code=404'* | *'HTTPError 404'* | *' not found: 404'* | *'NAT '*' not found'*) return 1 ;;
  esac
  cat "$errors" >&2
  exit 3
}
made_here() { # whether it said that this run made it: a label's value, or a description
  [ "${said#systole-made-by=}" = "$run" ]
}
accept=
case ${1:-} in
'') ;;
--accept-existing) accept=yes ;;
*)
  echo "usage: bash $0 [--accept-existing]" >&2
  exit 2
  ;;
esac
ours() { # WHAT COMMAND: whether it is there; what this run did not make is used only when told so
  local what=$1
  shift
  there "$@" || return 1
  if made_here || [ -n "$accept" ]; then return; fi
  echo "$what is there, and the run '$run' did not make it" >&2
  echo "  hint: bash $0 --accept-existing uses what is there as it is; or other names: gke.cluster, gke.network, --run" >&2
  exit 1
}
gcloud services enable compute.googleapis.com container.googleapis.com iam.googleapis.com logging.googleapis.com monitoring.googleapis.com storage.googleapis.com \
  --project=my-lab-7

# Its own network: nodes have no address of the internet; they reach it through NAT, and Google directly.
ours 'compute networks serve' gcloud compute networks describe serve --project=my-lab-7 --format='value(description)' ||
  gcloud compute networks create serve --project=my-lab-7 --subnet-mode=custom --description=systole-made-by=serve-8b
ours 'compute networks subnets serve' gcloud compute networks subnets describe serve --project=my-lab-7 --region=us-central1 --format='value(description)' ||
  gcloud compute networks subnets create serve \
  --project=my-lab-7 \
  --region=us-central1 \
  --network=serve \
  --range=10.0.0.0/20 \
  --secondary-range=pods=10.4.0.0/14,services=10.8.0.0/20 \
  --enable-private-ip-google-access \
  --description=systole-made-by=serve-8b
ours 'compute routers serve' gcloud compute routers describe serve --project=my-lab-7 --region=us-central1 --format='value(description)' ||
  gcloud compute routers create serve \
  --project=my-lab-7 \
  --region=us-central1 \
  --network=serve \
  --description=systole-made-by=serve-8b
there gcloud compute routers nats describe serve --project=my-lab-7 --region=us-central1 --router=serve ||
  gcloud compute routers nats create serve \
  --project=my-lab-7 \
  --region=us-central1 \
  --router=serve \
  --auto-allocate-nat-external-ips \
  --nat-all-subnet-ip-ranges
ours 'compute firewall-rules serve-inside' gcloud compute firewall-rules describe serve-inside --project=my-lab-7 --format='value(description)' ||
  gcloud compute firewall-rules create serve-inside \
  --project=my-lab-7 \
  --network=serve \
  --direction=INGRESS \
  --allow=tcp,udp,icmp \
  --source-ranges=10.0.0.0/20,10.4.0.0/14 \
  --description=systole-made-by=serve-8b

# Nodes may write logs and metrics and read images, no more.
ours 'iam service-accounts serve-nodes@my-lab-7.iam.gserviceaccount.com' gcloud iam service-accounts describe serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --project=my-lab-7 \
  --format='value(description)' ||
  gcloud iam service-accounts create serve-nodes \
  --project=my-lab-7 \
  --display-name='nodes of serve' \
  --description=systole-made-by=serve-8b
gcloud projects add-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null

ours 'container clusters serve' gcloud container clusters describe serve \
  --project=my-lab-7 \
  --location=us-central1-a \
  --format='value(resourceLabels.systole-made-by)' ||
  gcloud container clusters create serve \
  --project=my-lab-7 \
  --location=us-central1-a \
  --release-channel=regular \
  --machine-type=n1-standard-4 \
  --num-nodes=1 \
  --disk-size=100 \
  --enable-ip-alias \
  --enable-private-nodes \
  --network=serve \
  --subnetwork=serve \
  --cluster-secondary-range-name=pods \
  --services-secondary-range-name=services \
  --workload-pool=my-lab-7.svc.id.goog \
  --workload-metadata=GKE_METADATA \
  --service-account=serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --enable-dataplane-v2 \
  --addons=GcsFuseCsiDriver \
  --labels=managed-by=systole,systole-made-by=serve-8b

# The nodes of the job.
ours 'container node-pools serve-8b' gcloud container node-pools describe serve-8b \
  --project=my-lab-7 \
  --cluster=serve \
  --location=us-central1-a \
  --format='value(config.resourceLabels.systole-run)' ||
  gcloud container node-pools create serve-8b \
  --project=my-lab-7 \
  --cluster=serve \
  --location=us-central1-a \
  --node-locations=us-central1-a \
  --machine-type=g2-standard-12 \
  --accelerator=type=nvidia-l4,count=1,gpu-driver-version=latest \
  --num-nodes=3 \
  --enable-autoscaling \
  --min-nodes=3 \
  --max-nodes=7 \
  --enable-gvnic \
  --disk-size=100 \
  --image-type=COS_CONTAINERD \
  --service-account=serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --workload-metadata=GKE_METADATA \
  --labels=systole-run=serve-8b

# What it mounts; nobody reads it by its address.
there gcloud storage buckets describe gs://my-models --project=my-lab-7 || {
  gcloud storage buckets create gs://my-models \
  --project=my-lab-7 \
  --location=us-central1 \
  --uniform-bucket-level-access \
  --public-access-prevention \
  --lifecycle-file=/dev/stdin <<'END'
{"rule": [
  {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
  {"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": 30}}
]}
END
  gcloud storage buckets update gs://my-models --project=my-lab-7 --update-labels=systole-run=serve-8b
}

# The job is this account to Google, without a key.
gcloud iam service-accounts add-iam-policy-binding server@my-lab-7.iam.gserviceaccount.com \
  --project=my-lab-7 \
  --role=roles/iam.workloadIdentityUser \
  --member='serviceAccount:my-lab-7.svc.id.goog[serving/serve-8b]' >/dev/null

# kubectl knows it from here on; what it spoke to before is what it speaks to afterwards.
before=$(command kubectl config current-context 2>/dev/null || true)
gcloud container clusters get-credentials serve --project=my-lab-7 --location=us-central1-a
[ -z "$before" ] || command kubectl config use-context "$before" >/dev/null
kubectl() {
  command kubectl --context=gke_my-lab-7_us-central1-a_serve "$@"
}
kubectl get namespace serving >/dev/null 2>&1 || kubectl create namespace serving
kubectl wait node -l cloud.google.com/gke-nodepool=serve-8b --timeout=30m \
  --for='jsonpath={.status.allocatable.nvidia\.com/gpu}=1'
