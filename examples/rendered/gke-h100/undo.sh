#!/bin/bash
# systole: h100 on gke, workload 111111111111
# Takes away the nodes of the job; with --all the cluster and its networks too.
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
! there gcloud container node-pools describe h100 --project=my-lab-7 --cluster=train --location=us-central1 ||
  gcloud container node-pools delete h100 --quiet --project=my-lab-7 --cluster=train --location=us-central1
[ "${1:-}" = --all ] || exit 0
! there gcloud container clusters describe train --project=my-lab-7 --location=us-central1 ||
  gcloud container clusters delete train --quiet --project=my-lab-7 --location=us-central1
! there gcloud compute firewall-rules describe train-gpu-1-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-gpu-1-inside --quiet --project=my-lab-7
! there gcloud compute networks subnets describe train-gpu-1 --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets delete train-gpu-1 --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks describe train-gpu-1 --project=my-lab-7 ||
  gcloud compute networks delete train-gpu-1 --quiet --project=my-lab-7
! there gcloud compute firewall-rules describe train-gpu-2-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-gpu-2-inside --quiet --project=my-lab-7
! there gcloud compute networks subnets describe train-gpu-2 --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets delete train-gpu-2 --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks describe train-gpu-2 --project=my-lab-7 ||
  gcloud compute networks delete train-gpu-2 --quiet --project=my-lab-7
! there gcloud compute firewall-rules describe train-gpu-3-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-gpu-3-inside --quiet --project=my-lab-7
! there gcloud compute networks subnets describe train-gpu-3 --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets delete train-gpu-3 --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks describe train-gpu-3 --project=my-lab-7 ||
  gcloud compute networks delete train-gpu-3 --quiet --project=my-lab-7
! there gcloud compute firewall-rules describe train-gpu-4-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-gpu-4-inside --quiet --project=my-lab-7
! there gcloud compute networks subnets describe train-gpu-4 --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets delete train-gpu-4 --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks describe train-gpu-4 --project=my-lab-7 ||
  gcloud compute networks delete train-gpu-4 --quiet --project=my-lab-7
! there gcloud compute firewall-rules describe train-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-inside --quiet --project=my-lab-7
! there gcloud compute routers nats describe train --project=my-lab-7 --region=us-central1 --router=train ||
  gcloud compute routers nats delete train --quiet --project=my-lab-7 --region=us-central1 --router=train
! there gcloud compute routers describe train --project=my-lab-7 --region=us-central1 ||
  gcloud compute routers delete train --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks subnets describe train --project=my-lab-7 --region=us-central1 ||
  gcloud compute networks subnets delete train --quiet --project=my-lab-7 --region=us-central1
! there gcloud compute networks describe train --project=my-lab-7 ||
  gcloud compute networks delete train --quiet --project=my-lab-7
gcloud projects remove-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:train-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null || true
! there gcloud iam service-accounts describe train-nodes@my-lab-7.iam.gserviceaccount.com --project=my-lab-7 ||
  gcloud iam service-accounts delete train-nodes@my-lab-7.iam.gserviceaccount.com --quiet --project=my-lab-7
