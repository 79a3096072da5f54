#!/bin/bash
# systole: v5e on gke, workload 111111111111
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
there gcloud compute networks describe train --project=my-lab-7 ||
  gcloud compute networks create train --project=my-lab-7 --subnet-mode=custom
there gcloud compute networks subnets describe train --project=my-lab-7 --region=us-west4 ||
  gcloud compute networks subnets create train \
  --project=my-lab-7 \
  --region=us-west4 \
  --network=train \
  --range=10.0.0.0/20 \
  --secondary-range=pods=10.4.0.0/14,services=10.8.0.0/20 \
  --enable-private-ip-google-access
there gcloud compute routers describe train --project=my-lab-7 --region=us-west4 ||
  gcloud compute routers create train --project=my-lab-7 --region=us-west4 --network=train
there gcloud compute routers nats describe train --project=my-lab-7 --region=us-west4 --router=train ||
  gcloud compute routers nats create train \
  --project=my-lab-7 \
  --region=us-west4 \
  --router=train \
  --auto-allocate-nat-external-ips \
  --nat-all-subnet-ip-ranges
there gcloud compute firewall-rules describe train-inside --project=my-lab-7 ||
  gcloud compute firewall-rules create train-inside \
  --project=my-lab-7 \
  --network=train \
  --direction=INGRESS \
  --allow=tcp,udp,icmp \
  --source-ranges=10.0.0.0/20,10.4.0.0/14

# Nodes may write logs and metrics and read images, no more.
there gcloud iam service-accounts describe train-nodes@my-lab-7.iam.gserviceaccount.com --project=my-lab-7 ||
  gcloud iam service-accounts create train-nodes --project=my-lab-7 --display-name='nodes of train'
gcloud projects add-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:train-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null

there gcloud container clusters describe train --project=my-lab-7 --location=us-west4-a ||
  gcloud container clusters create train \
  --project=my-lab-7 \
  --location=us-west4-a \
  --release-channel=regular \
  --machine-type=n1-standard-4 \
  --num-nodes=1 \
  --enable-ip-alias \
  --enable-private-nodes \
  --network=train \
  --subnetwork=train \
  --cluster-secondary-range-name=pods \
  --services-secondary-range-name=services \
  --workload-pool=my-lab-7.svc.id.goog \
  --workload-metadata=GKE_METADATA \
  --service-account=train-nodes@my-lab-7.iam.gserviceaccount.com \
  --enable-dataplane-v2 \
  --labels=managed-by=systole

# The nodes of the job.
there gcloud container node-pools describe v5e --project=my-lab-7 --cluster=train --location=us-west4-a ||
  gcloud container node-pools create v5e \
  --project=my-lab-7 \
  --cluster=train \
  --location=us-west4-a \
  --node-locations=us-west4-a \
  --machine-type=ct5lp-hightpu-4t \
  --tpu-topology=4x4 \
  --num-nodes=4 \
  --spot \
  --node-taints=cloud.google.com/gke-spot=true:NoSchedule \
  --image-type=COS_CONTAINERD \
  --service-account=train-nodes@my-lab-7.iam.gserviceaccount.com \
  --workload-metadata=GKE_METADATA \
  --labels=systole-run=v5e

# kubectl knows it from here on; what it spoke to before is what it speaks to afterwards.
before=$(command kubectl config current-context 2>/dev/null || true)
gcloud container clusters get-credentials train --project=my-lab-7 --location=us-west4-a
[ -z "$before" ] || command kubectl config use-context "$before" >/dev/null
kubectl() {
  command kubectl --context=gke_my-lab-7_us-west4-a_train "$@"
}
kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml
kubectl wait node -l cloud.google.com/gke-nodepool=v5e --timeout=30m \
  --for='jsonpath={.status.allocatable.google\.com/tpu}=4'
