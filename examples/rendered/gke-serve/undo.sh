#!/bin/bash
# systole: serve-8b on gke, workload 111111111111
# Takes away the nodes of the job; with --all what else cluster.sh made for this run, and no more.
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
all=
case ${1:-} in
'') ;;
--all) all=yes ;;
*)
  echo "usage: bash $0 [--all]" >&2
  exit 2
  ;;
esac
left=()
tell() { # what was not taken away, and clean up
  rm -f "$errors"
  [ ${#left[@]} = 0 ] || printf 'left as it is: %s\n' "${left[@]}"
}
trap tell EXIT
ours() { # WHAT COMMAND: whether it is there and this run made it; what others made is told at the end
  local what=$1
  shift
  there "$@" || return 1
  made_here && return
  left+=("$what, which the run '$run' did not make")
  return 1
}
! ours 'container node-pools serve-8b' gcloud container node-pools describe serve-8b \
  --project=my-lab-7 \
  --cluster=serve \
  --location=us-central1-a \
  --format='value(config.resourceLabels.systole-run)' ||
  gcloud container node-pools delete serve-8b --quiet --project=my-lab-7 --cluster=serve --location=us-central1-a
[ -n "$all" ] || exit 0

# A cluster in which others have nodes stays, and with it all that it uses.
if ours 'container clusters serve' gcloud container clusters describe serve \
  --project=my-lab-7 \
  --location=us-central1-a \
  --format='value(resourceLabels.systole-made-by)'; then
  others=$(gcloud container clusters describe serve \
  --project=my-lab-7 \
  --location=us-central1-a \
  --format='value(nodePools[].name)')
  others=$(printf '%s\n' "$others" | tr ';' '\n' | grep -vx -e default-pool -e '' | paste -sd ' ' || true)
  if [ -n "$others" ]; then
    left+=('container clusters serve, in which others have nodes: '"$others")
  else
    gcloud container clusters delete serve --quiet --project=my-lab-7 --location=us-central1-a
  fi
fi
if there gcloud container clusters describe serve --project=my-lab-7 --location=us-central1-a; then
  left+=('its networks, their NAT and rules, and the account of its nodes, which it uses')
  exit 0
fi

! ours 'compute firewall-rules serve-inside' gcloud compute firewall-rules describe serve-inside --project=my-lab-7 --format='value(description)' ||
  gcloud compute firewall-rules delete serve-inside --quiet --project=my-lab-7
if ours 'compute routers serve' gcloud compute routers describe serve --project=my-lab-7 --region=us-central1 --format='value(description)'; then
! there gcloud compute routers nats describe serve --project=my-lab-7 --region=us-central1 --router=serve ||
  gcloud compute routers nats delete serve --quiet --project=my-lab-7 --region=us-central1 --router=serve
! there gcloud compute routers describe serve --project=my-lab-7 --region=us-central1 ||
  gcloud compute routers delete serve --quiet --project=my-lab-7 --region=us-central1
fi
! ours 'compute networks subnets serve' gcloud compute networks subnets describe serve --project=my-lab-7 --region=us-central1 --format='value(description)' ||
  gcloud compute networks subnets delete serve --quiet --project=my-lab-7 --region=us-central1
! ours 'compute networks serve' gcloud compute networks describe serve --project=my-lab-7 --format='value(description)' ||
  gcloud compute networks delete serve --quiet --project=my-lab-7
if ours 'iam service-accounts serve-nodes@my-lab-7.iam.gserviceaccount.com' gcloud iam service-accounts describe serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --project=my-lab-7 \
  --format='value(description)'; then
gcloud projects remove-iam-policy-binding my-lab-7 \
  --project=my-lab-7 \
  --member=serviceAccount:serve-nodes@my-lab-7.iam.gserviceaccount.com \
  --role=roles/container.defaultNodeServiceAccount \
  --condition=None >/dev/null || true
! there gcloud iam service-accounts describe serve-nodes@my-lab-7.iam.gserviceaccount.com --project=my-lab-7 ||
  gcloud iam service-accounts delete serve-nodes@my-lab-7.iam.gserviceaccount.com --quiet --project=my-lab-7
fi
left+=('gs://my-models, with what it holds')
