#!/bin/bash
# Runs inside a booted container, as root, after boot: drives the installed daemon and writes what it saw into /out.
# Each answer is a file; the test outside judges them.
set -u
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin COLUMNS=140
cd /out
systemctl is-system-running --wait > running.txt 2>&1
systemctl start npuprofd.socket npuprof-run.socket > start.txt 2>&1
systemctl is-active npuprofd.service > before.txt
npuprof submit --rows 2,17 --repeats 12 --warmup 1 --reason "booted test" > id.txt 2> submit-err.txt
id=$(cat id.txt)
systemctl is-active npuprofd.service > after.txt
first=$(systemctl show -p MainPID --value npuprofd.service)
spool=/var/lib/npuprof/work
for _ in $(seq 600); do grep -q '"event": "pass"' $spool/$id.1.events 2>/dev/null && break; sleep 0.1; done
systemctl list-units --no-legend 'npuprof-run@*' > workers.txt
worker=$(sed -n '1s/.*"pid": \([0-9]*\).*/\1/p' $spool/$id.1.events)
ps -o user=,pid= -p "$worker" > worker-user.txt 2>/dev/null || stat -c %U /proc/$worker > worker-user.txt
kill -9 "$first"
kill -0 "$worker" && echo alive > worker-after-kill.txt
npuprof watch "$id" > watch.txt 2> watch-err.txt
echo $? > watch-code.txt
systemctl show -p MainPID --value npuprofd.service > second-pid.txt
echo "$first" > first-pid.txt
npuprof queue --json > queue.json
npuprof list > list.txt 2>&1
npuprof check "$id" > check.txt 2>&1
journalctl --sync
journalctl NPUPROF_RUN="$id" -o json > journal.jsonl
stat -c '%U:%G %a' /run/npuprof/npuprof.sock /run/npuprof/run.sock /run/lock/npuprof /var/lib/npuprof > modes.txt
systemd-analyze verify /usr/local/lib/systemd/system/npuprofd.service /usr/local/lib/systemd/system/npuprofd.socket \
  /usr/local/lib/systemd/system/npuprof-run.socket '/usr/local/lib/systemd/system/npuprof-run@.service' > verify.txt 2>&1
echo $? > verify-code.txt
systemd-analyze security --threshold=10 npuprofd.service > security.txt 2>&1
echo $? > security-code.txt
# A daemon that stands still beyond its watchdog is killed and started again; the queue stays.
mkdir -p /run/systemd/system/npuprofd.service.d
printf '[Service]\nWatchdogSec=2\n' > /run/systemd/system/npuprofd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart npuprofd.service
stopped=$(systemctl show -p MainPID --value npuprofd.service)
kill -STOP "$stopped"
for _ in $(seq 200); do
  now=$(systemctl show -p MainPID --value npuprofd.service)
  [ "$now" != "$stopped" ] && [ "$now" != 0 ] && break
  sleep 0.1
done
echo "$stopped $now" > watchdog.txt
npuprof queue > queue-after-watchdog.txt 2>&1
# The journal as the log source of a server: a unit that logs pass lines.
systemctl start fake-server.service
npuprof run --target serve --url http://127.0.0.1:8099 --log journal:fake-server.service --rows 2,5 --repeats 3 \
  > journal-run.txt 2>&1
echo $? > journal-run-code.txt
journalctl -q -b -n 200 -o short-precise > journal-around-run.txt 2>&1
npuprof doctor --json > doctor.json 2>&1
useradd -m stranger
su stranger -c 'npuprof queue' > stranger.txt 2>&1
echo $? > stranger-code.txt
useradd -m -G npuprof member
su member -c 'npuprof submit --rows 2 --repeats 3 --reason member' > member.txt 2>&1
su member -c "npuprof watch $(cat member.txt)" > member-watch.txt 2>&1
echo $? > member-code.txt
make -C /source uninstall > uninstall.txt 2>&1
find /usr/local -name '*npuprof*' > left.txt
ls -A /run/npuprof >> left.txt 2>/dev/null
ls /var/lib/npuprof/runs > kept.txt
systemctl poweroff
