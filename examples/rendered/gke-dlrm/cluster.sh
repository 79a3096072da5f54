#!/bin/bash
# systole: dlrm on gke, workload 111111111111
# Makes the cluster, or what is missing of it; may be run again.
set -euo pipefail
account=$(gcloud auth list --filter=status:ACTIVE --format='value(account)')
if [ -z "$account" ]; then
  echo 'gcloud knows no account: gcloud auth login' >&2
  exit 3
fi
run=dlrm
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
gcloud services enable compute.googleapis.com container.googleapis.com iam.googleapis.com logging.googleapis.com monitoring.googleapis.com \
  --project=my-lab-7

# Its own network: nodes have no address of the internet; they reach it through NAT, and Google directly.
ours 'compute networks recsys' gcloud compute networks describe recsys --project=my-lab-7 --format='value(description)' ||
  gcloud compute networks create recsys --project=my-lab-7 --subnet-mode=custom --description=systole-made-by=dlrm
ours 'compute networks subnets recsys' gcloud compute networks subnets describe recsys --project=my-lab-7 --region=us-central1 --format='value(description)' ||
  gcloud compute networks subnets create recsys \
  --project=my-lab-7 \
  --region=us-central1 \
  --network=recsys \
  --range=10.0.0.0/20 \
  --secondary-range=pods=10.4.0.0/14,services=10.8.0.0/20 \
  --enable-private-ip-google-access \
  --description=systole-made-by=dlrm
ours 'compute routers recsys' gcloud compute routers describe recsys --project=my-lab-7 --region=us-central1 --format='value(description)' ||
  gcloud compute routers create recsys \
  --project=my-lab-7 \
  --region=us-central1 \
  --network=recsys \
  --description=systole-made-by=dlrm
there gcloud compute routers nats describe recsys --project=my-lab-7 --region=us-central1 --router=recsys ||
  gcloud compute routers nats create recsys \
  --project=my-lab-7 \
  --region=us-central1 \
  --router=recsys \
  --auto-allocate-nat-external-ips \
  --nat-all-subnet-ip-ranges
ours 'compute firewall-rules recsys-inside' gcloud compute firewall-rules describe recsys-inside --project=my-lab-7 --format='value(description)' ||
  gcloud compute firewall-rules create recsys-inside \
  --project=my-lab-7 \
  --network=recsys \
  --direction=INGRESS \
  --allow=tcp,udp,icmp \
  --source-ranges=10.0.0.0/20,10.4.0.0/14 \
  --description=systole-made-by=dlrm

# Nodes may write logs and metrics and read images, no more.
ours 'iam service-accounts recsys-nodes@my-lab-7.iam.gserviceaccount.com' gcloud iam service-accounts describe recsys-nodes@my-lab-7.iam.gserviceaccount.com \
  --project=my-lab-7 \
  --format='value(description)' ||
  gcloud iam service-accounts create recsys-nodes \
  --project=my-lab-7 \
  --display-name='nodes of recsys' \
  --description=systole-made-by=dlrm
gcloud projects add-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:recsys-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null

ours 'container clusters recsys' gcloud container clusters describe recsys \
  --project=my-lab-7 \
  --location=us-central1-a \
  --format='value(resourceLabels.systole-made-by)' ||
  gcloud container clusters create recsys \
  --project=my-lab-7 \
  --location=us-central1-a \
  --release-channel=regular \
  --machine-type=n1-standard-4 \
  --num-nodes=1 \
  --disk-size=100 \
  --enable-ip-alias \
  --enable-private-nodes \
  --network=recsys \
  --subnetwork=recsys \
  --cluster-secondary-range-name=pods \
  --services-secondary-range-name=services \
  --workload-pool=my-lab-7.svc.id.goog \
  --workload-metadata=GKE_METADATA \
  --service-account=recsys-nodes@my-lab-7.iam.gserviceaccount.com \
  --enable-dataplane-v2 \
  --labels=managed-by=systole,systole-made-by=dlrm

# The nodes of the job.
ours 'container node-pools dlrm' gcloud container node-pools describe dlrm \
  --project=my-lab-7 \
  --cluster=recsys \
  --location=us-central1-a \
  --format='value(config.resourceLabels.systole-run)' ||
  gcloud container node-pools create dlrm \
  --project=my-lab-7 \
  --cluster=recsys \
  --location=us-central1-a \
  --node-locations=us-central1-a \
  --machine-type=a2-highgpu-8g \
  --accelerator=type=nvidia-tesla-a100,count=8,gpu-driver-version=latest \
  --num-nodes=1 \
  --enable-autoscaling \
  --min-nodes=1 \
  --max-nodes=4 \
  --placement-type=COMPACT \
  --enable-gvnic \
  --disk-size=100 \
  --image-type=COS_CONTAINERD \
  --service-account=recsys-nodes@my-lab-7.iam.gserviceaccount.com \
  --workload-metadata=GKE_METADATA \
  --labels=systole-run=dlrm

# kubectl knows it from here on; what it spoke to before is what it speaks to afterwards.
before=$(command kubectl config current-context 2>/dev/null || true)
gcloud container clusters get-credentials recsys --project=my-lab-7 --location=us-central1-a
[ -z "$before" ] || command kubectl config use-context "$before" >/dev/null
kubectl() {
  command kubectl --context=gke_my-lab-7_us-central1-a_recsys "$@"
}
kubectl get namespace research >/dev/null 2>&1 || kubectl create namespace research
kubectl apply --server-side -k 'github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.4'
kubectl wait node -l cloud.google.com/gke-nodepool=dlrm --timeout=30m \
  --for='jsonpath={.status.allocatable.nvidia\.com/gpu}=8'
