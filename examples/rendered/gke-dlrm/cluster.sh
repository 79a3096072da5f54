#!/bin/bash
# systole: dlrm on gke, workload 111111111111
# Makes the cluster, or what is missing of it; may be run again.
set -euo pipefail
account=$(gcloud auth list --filter=status:ACTIVE --format='value(account)')
if [ -z "$account" ]; then
  echo 'gcloud knows no account: gcloud auth login' >&2
  exit 3
fi
there() { # whether what a command describes is there; ends the script where nobody knows
  local said
  said=$("$@" 2>&1 >/dev/null) && return
  case $said in
  *NOT_FOUND* | *'was not found'* | *'could not be found'* | *'does not exist'*) return 1 ;;
  *'code=404'* | *'HTTPError 404'* | *' not found: 404'* | *'NAT '*' not found'*) return 1 ;;
  esac
  printf '%s\n' "$said" >&2
  exit 3
}
gcloud services enable compute.googleapis.com container.googleapis.com iam.googleapis.com logging.googleapis.com monitoring.googleapis.com \
  --project=my-lab-7

# Its own network: nodes have no address of the internet; they reach it through NAT, and Google directly.
there gcloud compute networks describe recsys --project=my-lab-7 ||
  gcloud compute networks create recsys --project=my-lab-7 --subnet-mode=custom
there gcloud compute networks subnets describe recsys --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets create recsys \
  --project=my-lab-7 \
  --region=us-central1 \
  --network=recsys \
  --range=10.0.0.0/20 \
  --secondary-range=pods=10.4.0.0/14,services=10.8.0.0/20 \
  --enable-private-ip-google-access
there gcloud compute routers describe recsys --project=my-lab-7 --region=us-central1 ||
  gcloud compute routers create recsys --project=my-lab-7 --region=us-central1 --network=recsys
there gcloud compute routers nats describe recsys --project=my-lab-7 --region=us-central1 --router=recsys ||
  gcloud compute routers nats create recsys \
  --project=my-lab-7 \
  --region=us-central1 \
  --router=recsys \
  --auto-allocate-nat-external-ips \
  --nat-all-subnet-ip-ranges
there gcloud compute firewall-rules describe recsys-inside --project=my-lab-7 ||
  gcloud compute firewall-rules create recsys-inside \
  --project=my-lab-7 \
  --network=recsys \
  --direction=INGRESS \
  --allow=tcp,udp,icmp \
  --source-ranges=10.0.0.0/20,10.4.0.0/14

# Nodes may write logs and metrics and read images, no more.
there gcloud iam service-accounts describe recsys-nodes@my-lab-7.iam.gserviceaccount.com --project=my-lab-7 ||
  gcloud iam service-accounts create recsys-nodes --project=my-lab-7 --display-name='nodes of recsys'
gcloud projects add-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:recsys-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null

there gcloud container clusters describe recsys --project=my-lab-7 --location=us-central1-a ||
  gcloud container clusters create recsys \
  --project=my-lab-7 \
  --location=us-central1-a \
  --release-channel=regular \
  --machine-type=n1-standard-4 \
  --num-nodes=1 \
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
  --labels=managed-by=systole

# The nodes of the job.
there gcloud container node-pools describe dlrm --project=my-lab-7 --cluster=recsys --location=us-central1-a ||
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
kubectl apply --server-side -k 'github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.4'
kubectl wait node -l cloud.google.com/gke-nodepool=dlrm --timeout=30m \
  --for='jsonpath={.status.allocatable.nvidia\.com/gpu}=8'
