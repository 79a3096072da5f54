#!/bin/bash
# systole: v5e on gke, workload 111111111111
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
! there gcloud container node-pools describe v5e --project=my-lab-7 --cluster=train --location=us-west4-a ||
  gcloud container node-pools delete v5e --quiet --project=my-lab-7 --cluster=train --location=us-west4-a
[ "${1:-}" = --all ] || exit 0
! there gcloud container clusters describe train --project=my-lab-7 --location=us-west4-a ||
  gcloud container clusters delete train --quiet --project=my-lab-7 --location=us-west4-a
! there gcloud compute firewall-rules describe train-inside --project=my-lab-7 ||
  gcloud compute firewall-rules delete train-inside --quiet --project=my-lab-7
! there gcloud compute routers nats describe train --project=my-lab-7 --region=us-west4 --router=train ||
  gcloud compute routers nats delete train --quiet --project=my-lab-7 --region=us-west4 --router=train
! there gcloud compute routers describe train --project=my-lab-7 --region=us-west4 ||
  gcloud compute routers delete train --quiet --project=my-lab-7 --region=us-west4
! there gcloud compute networks subnets describe train --project=my-lab-7 --region=us-west4 ||
  gcloud compute networks subnets delete train --quiet --project=my-lab-7 --region=us-west4
! there gcloud compute networks describe train --project=my-lab-7 ||
  gcloud compute networks delete train --quiet --project=my-lab-7
gcloud projects remove-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:train-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null || true
! there gcloud iam service-accounts describe train-nodes@my-lab-7.iam.gserviceaccount.com --project=my-lab-7 ||
  gcloud iam service-accounts delete train-nodes@my-lab-7.iam.gserviceaccount.com --quiet --project=my-lab-7
