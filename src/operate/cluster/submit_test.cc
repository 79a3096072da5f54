// submit, stop and purge on a cluster that lies, refuses, forgets and disappears.
#include "operate/cluster/submit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "ground/base/text_file.h"

namespace systole {
namespace {

struct FakeCluster : ClusterClient {
  const char* name() const override { return "slurm"; }
  Result<std::string> send(const Record& record) override {
    ++sent;
    if (!spoils.empty()) write_text_file(spoils, "no line of an audit\n").value();
    if (refuses) return error(ErrorKind::invalid, "sbatch refuses: Invalid account");
    const std::string id = std::to_string(100 + static_cast<int>(jobs.size()));
    if (takes)
      jobs.push_back({.id = id, .run = record.run, .submission = record.submission, .state = RunState::queued});
    if (dies_after) away = true;
    if (silent || away) return error(ErrorKind::io, "sbatch cannot ask Slurm's controller");
    return id;
  }
  Result<std::vector<JobStatus>> query(std::span<const Record> records) override {
    ++queried;
    if (away) return error(ErrorKind::io, "squeue cannot ask Slurm's controller");
    std::vector<JobStatus> mine;
    for (const JobStatus& job : jobs)
      if (std::ranges::find(records, job.run, &Record::run) != records.end()) mine.push_back(job);
    return mine;
  }
  Status stop(const Record& record, bool now) override {
    ++(now ? forced : asked);
    for (JobStatus& job : jobs)
      if (job.submission == record.submission && (now || obeys)) job.state = RunState::stopped;
    return {};
  }
  Result<std::vector<std::string>> inside(const Record&, const JobStatus&, const std::string&,
                                          std::span<const std::string>) override {
    return std::vector<std::string>();
  }
  Result<std::unique_ptr<Output>> output(const Record&, bool) override { return std::unique_ptr<Output>(); }
  Status bring(const Record&, const std::string&, const std::string&) override { return {}; }
  Status purge(const Record&) override { return {}; }

  std::vector<JobStatus> jobs;
  bool refuses = false, takes = true, silent = false, away = false, dies_after = false, obeys = true;
  int sent = 0, queried = 0, asked = 0, forced = 0;
  std::string spoils;  // a file to damage during the send
};

struct Submitting : testing::Test {
  Submitting() : folder_(made()), submissions_(Submissions::open(folder_ + "/runs").value()) {
    ask_.record.run = "line";
    ask_.record.target = "slurm";
    ask_.record.from = folder_;
    ask_.record.folder = "runs/line";
    ask_.record.workload_sha256 = std::string(64, 'a');
    ask_.record.program_sha256 = std::string(64, 'b');
    ask_.program = folder_ + "/program";
    write_text_file(ask_.program, "a program").value();
    ask_.files = {{"job.sbatch", "#!/bin/bash\n"}, {"start.sh", "#!/bin/sh\n"}};
  }
  ~Submitting() override { std::filesystem::remove_all(folder_); }
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-submit-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  Result<Submitted> submitted() { return submit(cluster_, ask_, context()); }
  SubmissionContext context() { return {submissions_, audit_, clock_}; }
  JobStatus status() { return query(cluster_, *submissions_.find("line").value()).value().overall(); }
  void ledger(const std::string& text) { write_text_file(submissions_.place("line") + "/ledger", text).value(); }
  void expect_audit_holds() {
    std::vector<std::string> known;
    for (const Record& record : submissions_.list().value()) known.push_back(record.audit);
    EXPECT_TRUE(verify_audit(submissions_.path(), known).ok());
  }

  std::string folder_;
  Submissions submissions_;
  FakeClock clock_;
  Audit audit_{submissions_.path(), clock_};
  FakeCluster cluster_;
  SubmitRequest ask_;
};

TEST_F(Submitting, sends_once_and_says_so_the_second_time) {
  const Submitted first = submitted().value();
  EXPECT_EQ(first.record.id, "100");
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(read_text_file(first.record.program).value(), "a program");
  EXPECT_TRUE(std::filesystem::exists(first.record.place + "/files/job.sbatch"));
  const Submitted second = submitted().value();
  EXPECT_TRUE(second.was_there);
  EXPECT_EQ(second.record, first.record);
  EXPECT_EQ(cluster_.sent, 1);
  expect_audit_holds();
}

TEST_F(Submitting, a_record_is_read_back_as_it_was_written) {
  ask_.record.usd_per_hour = DollarsPerHour(12.25);
  ask_.record.where = {{"hosts", "- a a\n- b b\n"}};
  const Record record = submitted().value().record;
  EXPECT_EQ(*submissions_.find("line").value(), record);
  EXPECT_EQ(submissions_.list().value(), std::vector<Record>{record});
}

TEST_F(Submitting, a_run_that_is_over_is_settled_by_one_query) {
  const Record record = submitted().value().record;
  cluster_.jobs[0].state = RunState::failed;
  cluster_.queried = 0;
  EXPECT_EQ(settle(cluster_, record).value().overall().state, RunState::failed);
  EXPECT_EQ(cluster_.queried, 1);
}

TEST_F(Submitting, what_was_taken_without_an_answer_is_found_by_its_number) {
  cluster_.silent = true;
  EXPECT_EQ(submitted().value().record.id, "100");
  EXPECT_EQ(cluster_.sent, 1);
}

TEST_F(Submitting, a_controller_that_dies_as_it_takes_it_is_asked_again_and_not_sent_again) {
  cluster_.dies_after = true;
  const Result<Submitted> unknown = submitted();
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::io);
  EXPECT_NE(unknown.error().hint.find("never twice"), std::string::npos);
  EXPECT_FALSE(submitted().ok()) << "it is still away";
  cluster_.away = cluster_.dies_after = false;
  const Submitted found = submitted().value();
  EXPECT_TRUE(found.was_there);
  EXPECT_EQ(found.record.id, "100");
  EXPECT_EQ(cluster_.sent, 1);
}

TEST_F(Submitting, a_controller_that_died_before_it_took_it_is_sent_it_again) {
  cluster_.dies_after = true;
  cluster_.takes = false;
  ASSERT_FALSE(submitted().ok());
  cluster_.away = cluster_.dies_after = false;
  cluster_.takes = true;
  EXPECT_EQ(submitted().value().record.id, "100");
  EXPECT_EQ(cluster_.jobs.size(), 1u);
}

TEST_F(Submitting, what_is_refused_leaves_no_run_behind) {
  cluster_.refuses = true;
  EXPECT_EQ(submitted().error().kind, ErrorKind::invalid);
  EXPECT_TRUE(submissions_.list().value().empty());
  EXPECT_FALSE(std::filesystem::exists(submissions_.place("line")));
  expect_audit_holds();
}

TEST_F(Submitting, what_fails_before_it_is_sent_leaves_nothing) {
  const auto fails = [&](const char* why) {
    EXPECT_FALSE(submitted().ok()) << why;
    EXPECT_FALSE(std::filesystem::exists(submissions_.place("line"))) << why;
    EXPECT_FALSE(std::filesystem::exists(submissions_.place(kProgramsFolder))) << why;
  };
  cluster_.away = true;
  fails("the cluster cannot be asked");
  cluster_.away = false;
  std::filesystem::rename(ask_.program, ask_.program + "-elsewhere");
  fails("the program cannot be read");
  std::filesystem::rename(ask_.program + "-elsewhere", ask_.program);
  ask_.files.push_back({"start.sh/inside", ""});
  fails("a file cannot be written");
  ask_.files.pop_back();
  const std::string audit = submissions_.path() + "/audit.jsonl";
  std::filesystem::create_directory(audit);
  fails("the audit cannot be written");
  std::filesystem::remove(audit);
  EXPECT_EQ(cluster_.sent, 0);
  EXPECT_TRUE(submitted().ok());
}

TEST_F(Submitting, one_that_fails_takes_no_folder_from_another) {
  Submissions other = Submissions::open(folder_ + "/runs").value();
  cluster_.away = true;
  EXPECT_FALSE(submitted().ok());
  submissions_.remove_if_empty();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/runs")) << "the other one has it open";
  cluster_.away = false;
  const Record record = submit(cluster_, ask_, {other, audit_, clock_}).value().record;
  EXPECT_EQ(Submissions::open(folder_ + "/runs").value().list().value(), std::vector<Record>{record});
  EXPECT_TRUE(std::filesystem::exists(record.program));
  other.remove_if_empty();
  EXPECT_TRUE(std::filesystem::exists(record.place + "/files/job.sbatch"));
}

TEST_F(Submitting, what_is_refused_leaves_what_was_there_without_a_record) {
  submitted().value();
  ledger("began 100 0 1000 4\n");
  cluster_.jobs.clear();
  submissions_.forget("line").value();
  cluster_.refuses = true;
  EXPECT_FALSE(submitted().ok());
  EXPECT_FALSE(submissions_.find("line").value());
  EXPECT_TRUE(std::filesystem::exists(submissions_.place("line") + "/ledger"));
}

TEST_F(Submitting, what_is_refused_takes_no_program_that_another_run_needs) {
  cluster_.refuses = true;
  EXPECT_FALSE(submitted().ok());
  EXPECT_FALSE(std::filesystem::exists(submissions_.place(kProgramsFolder)));
  cluster_.refuses = false;
  const Record line = submitted().value().record;
  cluster_.refuses = true;
  ask_.record.run = "other";
  EXPECT_FALSE(submitted().ok());
  EXPECT_TRUE(std::filesystem::exists(line.program));
  ask_.record.program_sha256 = std::string(64, 'd');
  EXPECT_FALSE(submitted().ok());
  EXPECT_TRUE(std::filesystem::exists(line.program));
  EXPECT_FALSE(std::filesystem::exists(submissions_.place(kProgramsFolder) + "/" + ask_.record.program_sha256));
  EXPECT_FALSE(std::filesystem::exists(submissions_.place("other")));
}

TEST_F(Submitting, what_is_refused_leaves_no_run_behind_though_the_audit_cannot_tell_of_it) {
  cluster_.refuses = true;
  cluster_.spoils = submissions_.path() + "/audit.jsonl";
  const Result<Submitted> refused = submitted();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "sbatch refuses: Invalid account");
  ASSERT_EQ(refused.error().others.size(), 1u);
  EXPECT_EQ(refused.error().others[0].kind, ErrorKind::corrupt);
  EXPECT_FALSE(std::filesystem::exists(submissions_.place("line")));
}

TEST_F(Submitting, what_may_have_been_taken_stays_with_its_program) {
  cluster_.dies_after = true;
  EXPECT_FALSE(submitted().ok());
  const std::optional<Record> record = submissions_.find("line").value();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->id, "");
  EXPECT_TRUE(std::filesystem::exists(record->program));
  EXPECT_TRUE(std::filesystem::exists(record->place + "/files/job.sbatch"));
}

TEST_F(Submitting, what_is_refused_when_sent_again_leaves_what_was_there) {
  const Record before = submitted().value().record;
  cluster_.jobs[0].state = RunState::failed;
  cluster_.refuses = ask_.again = true;
  EXPECT_FALSE(submitted().ok());
  EXPECT_EQ(*submissions_.find("line").value(), before);
}

TEST_F(Submitting, another_workload_of_that_name_is_refused_while_it_runs) {
  submitted().value();
  ask_.record.workload_sha256 = std::string(64, 'c');
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists);
  ask_.again = true;
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists);
  EXPECT_EQ(cluster_.sent, 1);
}

TEST_F(Submitting, one_that_is_over_goes_on_only_when_that_is_asked) {
  submitted().value();
  for (const RunState over : {RunState::failed, RunState::stopped, RunState::finished}) {
    cluster_.jobs.back().state = over;
    ask_.again = false;
    EXPECT_EQ(submitted().error().kind, ErrorKind::exists) << name_of(over);
  }
  cluster_.jobs.back().state = RunState::failed;
  ask_.again = true;
  const Record again = submitted().value().record;
  EXPECT_EQ(again.id, "101");
  EXPECT_EQ(again.earlier, std::vector<std::string>{"100"});
  EXPECT_EQ(status().state, RunState::queued) << "the earlier job counts no longer";
}

TEST_F(Submitting, a_job_of_that_name_without_a_record_is_left_alone) {
  cluster_.jobs.push_back({.id = "7", .run = "line", .submission = "x", .state = RunState::running});
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists);
  cluster_.jobs[0].state = RunState::finished;
  EXPECT_TRUE(submitted().ok());
}

TEST_F(Submitting, one_by_the_same_workload_whose_record_is_lost_is_found_again) {
  const Record before = submitted().value().record;
  cluster_.jobs[0].state = RunState::running;
  ASSERT_TRUE(submissions_.remove("line").ok());
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists) << "a target that does not say of which workload";
  cluster_.jobs[0].workload = std::string(64, 'c');
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists) << "of another one";
  cluster_.jobs[0].workload = ask_.record.workload_sha256;
  const Submitted found = submitted().value();
  EXPECT_TRUE(found.was_there);
  EXPECT_EQ(found.record.id, before.id);
  EXPECT_EQ(found.record.submission, before.submission);
  EXPECT_TRUE(std::filesystem::exists(before.place + "/files/job.sbatch"));
  EXPECT_EQ(cluster_.sent, 1);
  expect_audit_holds();
}

TEST_F(Submitting, one_on_another_cluster_is_not_sent_to_this_one) {
  ask_.record.where = {{"context", "here"}};
  const Record record = submitted().value().record;
  cluster_.jobs.clear();  // a different cluster's view
  ask_.record.where = {{"context", "there"}};
  for (const bool again : {false, true}) {
    ask_.again = again;
    const Result<Submitted> refused = submitted();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::exists);
    EXPECT_EQ(refused.error().message, "the run 'line' was submitted to context here");
    EXPECT_EQ(refused.error().hint, "--context here; or another name: --run");
  }
  Record half = record;  // the submitter got no answer
  half.id.clear();
  submissions_.write(half).value();
  EXPECT_EQ(submitted().error().kind, ErrorKind::exists);
  EXPECT_EQ(cluster_.sent, 1);
  ask_.record.where.clear();  // a target without whereabouts
  EXPECT_TRUE(submitted().ok());
}

TEST_F(Submitting, two_at_once_are_one) {
  const auto lock = submissions_.lock("line").value();
  EXPECT_EQ(submitted().error().kind, ErrorKind::busy);
  EXPECT_EQ(cluster_.sent, 0);
}

TEST_F(Submitting, a_record_that_is_none_is_said) {
  submitted().value();
  write_text_file(submissions_.place("line") + "/record.json", "{\"run\": \"other\"").value();
  EXPECT_EQ(submitted().error().kind, ErrorKind::corrupt);
  EXPECT_EQ(submissions_.list().error().kind, ErrorKind::corrupt);
  EXPECT_EQ(cluster_.sent, 1);
}

TEST_F(Submitting, a_job_starts_until_its_ledger_says_that_it_began) {
  submitted().value();
  cluster_.jobs[0].state = RunState::running;
  EXPECT_EQ(status().state, RunState::starting);
  ledger("began 100 0 1000 4\n");
  EXPECT_EQ(status().state, RunState::running);
  cluster_.jobs[0].restarts = 1;
  EXPECT_EQ(status().state, RunState::starting) << "that was the time before";
}

TEST_F(Submitting, how_a_forgotten_job_ended_is_in_its_ledger) {
  submitted().value();
  cluster_.jobs.clear();
  EXPECT_EQ(status().state, RunState::unknown);
  ledger("began 100 0 1000 4\n");
  EXPECT_EQ(status().state, RunState::unknown);
  const auto ends_as = [&](int code) {
    ledger(fmt::format("began 100 0 1000 4\nended 100 0 1100 {}\n", code));
    return status();
  };
  EXPECT_EQ(ends_as(0).state, RunState::finished);
  EXPECT_EQ(ends_as(0).ended_at, 1100);
  EXPECT_EQ(ends_as(1).state, RunState::failed);
  EXPECT_EQ(ends_as(1).reason, "exit code 1");
  EXPECT_EQ(ends_as(75).state, RunState::failed);
  write_text_file(submissions_.place("line") + "/stop", "").value();
  EXPECT_EQ(ends_as(75).state, RunState::stopped);
  EXPECT_EQ(ends_as(75).reason, "saved");
}

TEST_F(Submitting, an_array_is_as_its_most_urgent_task) {
  submitted().value();
  JobStatus task = cluster_.jobs[0];
  cluster_.jobs.clear();
  for (const auto& [id, state] :
       {std::pair("100_0", RunState::finished), {"100_1", RunState::failed}, {"100_2", RunState::queued}}) {
    task.id = id;
    task.state = state;
    cluster_.jobs.push_back(task);
  }
  EXPECT_EQ(status().state, RunState::queued);
  EXPECT_EQ(status().reason, "1 queued, 1 failed, 1 finished");
}

TEST_F(Submitting, stop_asks_waits_and_then_insists) {
  submitted().value();
  const Record record = *submissions_.find("line").value();
  cluster_.jobs[0].state = RunState::running;
  cluster_.obeys = false;
  EXPECT_EQ(stop(cluster_, record, {}, context()).value().overall().state, RunState::stopped);
  EXPECT_EQ(cluster_.asked, 1);
  EXPECT_EQ(cluster_.forced, 1);
  EXPECT_GE(clock_.now().count(), 120);
  EXPECT_EQ(stop(cluster_, record, {}, context()).value().overall().state, RunState::stopped)
      << "and of one that is over is fine";
  EXPECT_EQ(cluster_.asked, 1);
  expect_audit_holds();
}

TEST_F(Submitting, purge_leaves_nothing_but_the_audit) {
  const Record record = submitted().value().record;
  cluster_.jobs[0].state = RunState::running;
  EXPECT_EQ(purge(cluster_, record, context()).error().kind, ErrorKind::busy);
  cluster_.jobs[0].state = RunState::stopped;
  ASSERT_TRUE(purge(cluster_, record, context()).ok());
  EXPECT_FALSE(std::filesystem::exists(record.place));
  EXPECT_FALSE(std::filesystem::exists(record.program));
  EXPECT_TRUE(submissions_.list().value().empty());
  expect_audit_holds();
}

TEST_F(Submitting, a_run_may_be_named_as_anything_that_is_kept) {
  const Record line = submitted().value().record;
  ask_.record.run = "programs";
  const Record programs = submitted().value().record;
  EXPECT_EQ(submissions_.list().value(), (std::vector<Record>{line, programs}));
  cluster_.jobs[1].state = RunState::finished;
  ASSERT_TRUE(purge(cluster_, programs, context()).ok());
  EXPECT_EQ(read_text_file(line.program).value(), "a program");
  EXPECT_EQ(submissions_.list().value(), std::vector<Record>{line});
}

TEST_F(Submitting, purge_wants_to_know_that_it_is_over) {
  const Record record = submitted().value().record;
  cluster_.jobs[0].state = RunState::unknown;
  cluster_.jobs[0].reason = "n1 does not answer";
  ledger("began 100 0 1000 4\n");
  const Status refused = purge(cluster_, record, context());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::busy);
  EXPECT_EQ(refused.error().message, "whether the run 'line' is over is not known: n1 does not answer");
  EXPECT_NE(refused.error().hint.find("--now --purge line"), std::string::npos);
  EXPECT_TRUE(submissions_.find("line").value());
  ledger("began 100 0 1000 4\nended 100 0 1100 0\nbegan 100 1 1200 4\n");
  EXPECT_FALSE(purge(cluster_, record, context()).ok()) << "it was begun again";
  ledger("began 100 0 1000 4\nended 100 0 1100 0\n");
  EXPECT_TRUE(purge(cluster_, record, context()).ok()) << "it told of its end";
  const Record second = submitted().value().record;
  cluster_.jobs[1].state = RunState::unknown;
  EXPECT_FALSE(purge(cluster_, second, context()).ok());
  EXPECT_TRUE(purge(cluster_, second, context(), true).ok()) << "it is asked without knowing";
}

}  // namespace
}  // namespace systole
