#include "operate/targets/ssh/batch_task.h"

#include <fmt/ranges.h>

#include "operate/render/batch_task.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/picture.h"
#include "operate/targets/ssh/hosts.h"

namespace systole {
namespace {

constexpr const char* kUnits = ".config/systemd/user";  // of the user's own systemd

// UNIT: what is started: the timer, or the service at once.
constexpr const char* kScript = R"sh(
files=$(cd "$(dirname "$0")" && pwd) || exit 3
what=${1:-start}
ON_MACHINE
case $what in
start)
  command="mkdir -p -- UNITS NAME.systole && tar -C UNITS -xof - &&
    mv UNITS/NAME.yaml NAME.systole/job.yaml && systemctl --user daemon-reload && systemctl --user ENABLE UNIT"
  ;;
look) command='systemctl --user --no-pager status NAME.service; systemctl --user list-timers --no-pager --all NAME.timer' ;;
stop) command='systemctl --user disable --now NAME.timer 2>/dev/null; systemctl --user stop NAME.service' ;;
*)
  echo "usage: sh batch.sh start | look | stop" >&2
  exit 2
  ;;
esac
failed=0
while read -r p login name <&4; do
  if [ "$what" = start ]; then
    tar -C "$files" -cf - -- CARRIED | on "$p" "$login" "$command" || failed=1
  else
    echo "$name:"
    on "$p" "$login" "$command" </dev/null || [ "$what" = look ] || failed=1
  fi
done 4<"$files/hosts"
exit "$failed"
)sh";

// systemd reads $$ as $. Ended by a signal it is begun again; with an exit code of its own it is not.
constexpr const char* kService = R"(
[Unit]
Description=systole batch NAME
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/bin/sh -c 'PATH="$$HOME/.local/bin:$$PATH" exec "$${SYSTOLE:-systole}" batch "$$HOME/NAME.systole/job.yaml"OPTIONS'
Restart=on-failure
RestartSec=60
RestartPreventExitStatus=1 2 3 75
)";

constexpr const char* kTimer = R"(
[Unit]
Description=times of systole batch NAME

[Timer]
CALENDAR
Persistent=true
Unit=NAME.service

[Install]
WantedBy=timers.target
)";

Status check_paths(const BatchTask& task) {
  auto paths = read_paths(task);
  paths.emplace_back("output", task.output);
  for (const auto& [key, path] : paths)
    if (!path.starts_with('/'))
      return key_error(ErrorKind::invalid, key, "'{}' is no path from the root, on the machines", comment_text(path))
          .hinted(fmt::format("{}: /shared/{}", key, comment_text(path)));
  return {};
}

std::string named(std::string text, const std::string& run) {
  while (text.find("NAME") != text.npos) text = replaced(std::move(text), "NAME", run);
  return text;
}

}  // namespace

Result<Rendered> render_ssh_batch(const RenderRequest& ask, const ClusterJob& job) {
  const Workload& w = ask.workload;
  const BatchTask& task = *ask.batch;
  const std::vector<NamedHost> hosts = TRY(hosts_of(w));
  TRY(refuse_volumes(w, "plain machines have none"));
  TRY(refuse_environment(w, "ssh"));
  TRY(check_paths(task));
  if (!task.is_shared && hosts.size() > 1)
    return key_error(ErrorKind::invalid, "shards", "{} hosts, and the job is of one process", hosts.size())
        .hinted("shards: auto, with a folder that all hosts share; or one host");
  std::string options;
  const std::vector<std::string> words = batch_words(task, job, "");
  for (std::size_t i = 3; i < words.size(); ++i) options += " " + words[i];
  const std::string head = made_from(ask, job), service = job.run + ".service", timer = job.run + ".timer";
  Rendered rendered;
  rendered.files = {{"hosts", hosts_list(hosts)},
                    {job.run + ".yaml", task.file},
                    {service, head + named(replaced(kService + 1, "OPTIONS", options), job.run)}};
  std::string carried = job.run + ".yaml " + service;
  if (task.schedule) {
    std::vector<std::string> lines;
    for (const std::string& line : task.schedule->cron.on_calendar(task.schedule->zone))
      lines.push_back("OnCalendar=" + line);
    rendered.files.push_back(
        {timer, head + named(replaced(kTimer + 1, "CALENDAR", fmt::format("{}", fmt::join(lines, "\n"))), job.run)});
    carried += " " + timer;
  }
  std::string script = replaced(kScript + 1, "ON_MACHINE\n", kOnMachine + 1);
  while (script.find("UNITS") != script.npos) script = replaced(std::move(script), "UNITS", kUnits);
  script = replaced(replaced(std::move(script), "ENABLE", task.schedule ? "enable --now" : "start"), "UNIT",
                    task.schedule ? timer : service);
  script = named(replaced(std::move(script), "CARRIED", carried), job.run);
  rendered.files.push_back({"batch.sh",
                            "#!/bin/sh\n" + head +
                                "# batch.sh start | look | stop: the batch on the machines in `hosts`.\nset -u\n" +
                                script,
                            true});
  for (const char* what : {"start", "look", "stop"})
    rendered.commands.emplace_back(what, fmt::format("sh {}/batch.sh {}", shell_word(ask.place), what));
  ClusterJob drawn = job;
  drawn.nodes = {static_cast<std::int64_t>(hosts.size()), static_cast<std::int64_t>(hosts.size())};
  rendered.drawing = picture_of(ask, drawn, {.cluster = "machines by ssh", .nodes = w.ssh.hosts});
  if (task.schedule)
    rendered.warnings.push_back(
        "schedule: services of a user who is not logged in need `loginctl enable-linger` once on each machine");
  if (!w.image.empty()) rendered.warnings.push_back("image: plain machines start no containers; it is not used");
  return rendered;
}

}  // namespace systole
