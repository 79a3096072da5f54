#include "operate/cli/batch_schedule.h"

#include <filesystem>

#include "execute/serve/batch/batch_job.h"
#include "execute/serve/batch/dated_runs.h"
#include "ground/base/files.h"
#include "ground/base/iso_time.h"
#include "ground/base/text_file.h"

namespace systole::cli {
namespace {

std::string utc(std::int64_t time) {
  const std::string text = to_iso8601(std::chrono::system_clock::time_point(std::chrono::seconds(time)));
  return text.substr(0, 19) + "Z";
}

std::int64_t moment(const BatchScheduleOptions& options, Context& context) {
  if (options.at.empty()) return context.clock.unix_time();
  const auto time = from_iso8601(options.at);
  if (time.ok()) return std::chrono::floor<std::chrono::seconds>(time->time_since_epoch()).count();
  fail(error(ErrorKind::invalid, "--at: '{}' is no time", options.at).hinted("--at " + utc(context.clock.unix_time())));
}

ExitCode tell_next(const BatchScheduleOptions& options, const CronSchedule& schedule, Context& context) {
  Node times;
  std::int64_t due = moment(options, context);
  for (int i = 0; i < options.next; ++i) {
    due = schedule.next(due);
    context.out.data(fmt::format("{}  {}", schedule.name_of(due), utc(due)));
    times.push(Node::map({{"folder", schedule.name_of(due)}, {"due", utc(due)}, {"due_unix_s", due}}));
  }
  context.out.json(Node::map({{"time_zone", schedule.zone.name()}, {"cron", schedule.cron.text()}, {"next", times}}));
  return ExitCode::done;
}

// The runs of a job, in the folder of its output.
class JobRuns {
 public:
  // REQUIRES: the job has a schedule.
  explicit JobRuns(BatchJob job) : job_(std::move(job)), output_(job_.output) {
    if (output_.filename().empty())
      fail(key_error(ErrorKind::invalid, "output", "'{}' names no file", job_.output)
               .hinted("output: runs/answers.jsonl"));
    if (!output_.has_parent_path()) output_ = "." / output_;
    make_folders(output_.parent_path()).value();
    folder_ = open_posix_store(output_.parent_path().string()).value();
    if (job_.shards) return;  // processes share each run
    const std::string own = output_.filename().string() + ".schedule";
    make_dirs_synced(*folder_, own).value();
    lock_ = folder_->try_lock(own).value();
  }

  const CronSchedule& schedule() const { return *job_.schedule; }
  DatedRuns dated() const { return {schedule(), *folder_, output_.filename().string()}; }
  std::string output(std::int64_t due) const {
    return (output_.parent_path() / schedule().name_of(due) / output_.filename()).lexically_normal().string();
  }

 private:
  BatchJob job_;
  std::filesystem::path output_;
  std::unique_ptr<Store> folder_;
  std::unique_ptr<FileLock> lock_;  // of a process that is the only one
};

std::string begun_text(const JobRuns& runs, std::int64_t due, bool goes_on) {
  return fmt::format("{}: due at {}, {} {}", runs.schedule().name_of(due), utc(due), goes_on ? "goes on in" : "into",
                     runs.output(due));
}

ExitCode run_due(const BatchScheduleOptions& options, const JobRuns& runs, const RunBatch& run, Context& context) {
  const std::int64_t now = moment(options, context);
  const DatedRuns dated = runs.dated();
  SignalWatch watch;
  ExitCode ended = ExitCode::done;
  const std::optional<std::int64_t> begun = dated.cut_short().value(), due = dated.due(now).value();
  const bool goes_on = begun && *begun <= now;
  if (goes_on) {
    context.out.notice(begun_text(runs, *begun, true));
    try {
      ended = run(runs.output(*begun), watch);
    } catch (const Failure& failure) {
      if (!due || *due == *begun) throw;
      context.out.warning(failure.error());  // as with --on-schedule, the next one comes
    }
    if (ended == ExitCode::saved) return ended;
  }
  if (due && !(goes_on && *due == *begun)) {
    context.out.notice(begun_text(runs, *due, false));
    return run(runs.output(*due), watch);
  }
  if (!goes_on)
    context.out.notice(fmt::format("nothing is due; next: {}, at {}",
                                   runs.schedule().name_of(runs.schedule().next(now)), utc(runs.schedule().next(now))));
  return ended;
}

ExitCode run_on_schedule(const JobRuns& runs, const RunBatch& run, Context& context) {
  SignalWatch watch;
  bool is_saved = false;
  DatedRunner runner;
  runner.run = [&](std::int64_t due, bool goes_on) -> Result<bool> {
    context.out.notice(begun_text(runs, due, goes_on));
    try {
      is_saved = run(runs.output(due), watch) == ExitCode::saved;
      return !is_saved;
    } catch (const Failure& failure) { return failure.error(); }
  };
  runner.failed = [&](std::int64_t due, const Error& failed) {
    context.out.warning(failed);
    context.out.note(runs.schedule().name_of(due) + " failed; the schedule goes on");
  };
  runner.waits = [&](std::int64_t next) {
    context.out.notice(fmt::format("next: {}, at {}", runs.schedule().name_of(next), utc(next)));
  };
  runner.stops = [&] { return watch.stop_requested(); };
  follow_schedule(runs.dated(), runner, context.clock).value();
  return is_saved ? ExitCode::saved : ExitCode::done;
}

}  // namespace

ExitCode run_scheduled(const BatchScheduleOptions& options, const std::string& job, const RunBatch& run,
                       Context& context) {
  BatchJob read = parse_batch_job(read_text_file(job).value(), job).value();
  if (!read.schedule)
    fail(error(ErrorKind::invalid, "{}: the job has no schedule", job)
             .hinted("schedule: { cron: \"30 2 * * *\", time_zone: Europe/Berlin }"));
  if (options.next > 0) return tell_next(options, *read.schedule, context);
  const JobRuns runs(std::move(read));
  return options.due ? run_due(options, runs, run, context) : run_on_schedule(runs, run, context);
}

std::vector<Option> add_schedule_options(Subcommand command, BatchScheduleOptions& options) {
  Option next =
      command.add_option("--next", options.next, "print the next N times of the job's schedule").check(at_least(1));
  Option due = command.add_flag("--due", options.due,
                                "run what the schedule has due now, or was begun and not finished, in a folder of its "
                                "own; and end");
  Option loop = command.add_flag("--on-schedule", options.on_schedule,
                                 "stay, and run the job at the times of its schedule, each in a folder of its own");
  command.add_option("--at", options.at, "with --next and --due: as if it were this time, 2026-11-28T02:30:00Z");
  due.excludes(next).excludes(loop);
  loop.excludes(next).excludes("--at");
  return {next, due, loop};
}

}  // namespace systole::cli
