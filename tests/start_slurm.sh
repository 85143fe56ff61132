#!/usr/bin/env bash
# A Slurm of one node on this machine from Debian's packages, for the tests of `perfrun submit`: start_slurm.sh [start|stop].
# As root; its state lies below /run and /var/spool.
set -euo pipefail
conf=/etc/slurm/slurm.conf
if [ -f $conf ] && ! grep -q '^ClusterName=perfrun-tests$' $conf; then
  echo "$conf is not of these tests: a Slurm is set up here already" >&2
  exit 0
fi
node=$(hostname -s)
if [ "${1:-start}" = stop ]; then
  for d in slurmd slurmctld; do [ -f /run/$d.pid ] && kill "$(cat /run/$d.pid)" 2>/dev/null || true; done
  for _ in $(seq 40); do pgrep -x slurmd >/dev/null || pgrep -x slurmctld >/dev/null || exit 0; sleep .25; done
  exit 1
fi
command -v slurmctld >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge >/dev/null; }
install -d -o munge -g munge /run/munge /var/log/munge
install -d /var/spool/slurmctld /var/spool/slurmd /etc/slurm
[ -f /etc/munge/munge.key ] || mungekey --create
munge -n 2>/dev/null | unmunge >/dev/null 2>&1 || runuser -u munge -- /usr/sbin/munged
cat >$conf <<C
ClusterName=perfrun-tests
SlurmctldHost=$node
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
# So that a task that was requeued starts within seconds, not minutes.
AuthInfo=cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
NodeName=$node CPUs=$(nproc) State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
rm -f /var/spool/slurmctld/clustername      # left by a cluster of another name
pgrep -x slurmctld >/dev/null || slurmctld
pgrep -x slurmd >/dev/null || slurmd
for _ in $(seq 20); do sinfo -h -o %t 2>/dev/null | grep -q idle && exit 0; sleep .5; done
sinfo; exit 1
