// Secrets reach only the ranks: a planted one must not occur in anything that a run, a plan or rendered files write or
// print.

#include <gtest/gtest.h>

#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

const std::string kPlanted = "hunter2-Zx9-planted";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The files below a folder that contain it, except its own file.
std::vector<std::string> files_with(const std::string& text, const std::filesystem::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.is_symlink() || entry.path().filename() == "the-secret") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    if (has(all.str(), text)) found.push_back(entry.path().string());
  }
  return found;
}

class Secrets : public testing::Test {
 protected:
  Secrets() {
    systole_.write("the-secret", kPlanted + "\n");
    std::filesystem::permissions(path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  std::string path() const { return (systole_.folder() / "the-secret").string(); }

  // A program that prints the SHA-256 of its variable, and searches the arguments of all processes for the value.
  void write_job(const std::string& reference) const {
    systole_.write("program.sh",
                   "printf %s \"$TOKEN\" | sha256sum\n"
                   "for f in /proc/[0-9]*/cmdline; do\n"
                   "  words=$(tr '\\0' ' ' 2>/dev/null <\"$f\") || continue\n"
                   "  case $words in *\"$TOKEN\"*) echo \"in the arguments of $f\" ;; esac\n"
                   "done\n");
    systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: [sh, program.sh]\nsecrets: { TOKEN: '" + reference +
                                   "' }\nresources: { threads: 1, memory: 1GiB, longest: 1h }\nimage: a/b:1\n");
  }
  void expect_only_ranks_have_it(const Captured& done) const {
    EXPECT_EQ(done.exit.code, 0) << done.err;
    const Captured sum = systole_.shell("printf %s " + kPlanted + " | sha256sum");
    EXPECT_TRUE(has(done.err, sum.out.substr(0, 64))) << "the rank has not the value: " << done.err;
    EXPECT_FALSE(has(done.err, "in the arguments of")) << done.err;
    EXPECT_FALSE(has(done.out + done.err, kPlanted));
    EXPECT_EQ(files_with(kPlanted, systole_.folder()), std::vector<std::string>());
  }

  SystoleRunner systole_;
};

TEST_F(Secrets, of_a_file_reach_the_ranks_and_nothing_else) {
  write_job("file:" + path());
  expect_only_ranks_have_it(systole_.run({"run", "job.yaml", "--ranks", "2"}));
}

// Files that ranks create from a secret are not readable by others, whatever the umask; their logs never are.
TEST_F(Secrets, make_files_that_are_their_owners_alone) {
  write_job("file:" + path());
  systole_.write("program.sh", "echo made >one/made\n");
  EXPECT_EQ(systole_
                .shell("umask 022; \"$SYSTOLE\" run job.yaml --ranks 1 --folder one >/dev/null 2>&1; cat one/made; "
                       "find one -perm /077")
                .out,
            "made\n");
  systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: [echo, token]\n");
  EXPECT_EQ(systole_
                .shell("umask 022; \"$SYSTOLE\" run job.yaml --ranks 1 --folder two >/dev/null 2>&1; "
                       "stat -c %a two/logs/*")
                .out,
            "600\n");
}

TEST_F(Secrets, of_the_environment_reach_the_ranks_and_nothing_else) {
  write_job("env:MINE");
  expect_only_ranks_have_it(systole_.shell("MINE=$(cat the-secret) \"$SYSTOLE\" run job.yaml --ranks 2"));
}

TEST_F(Secrets, of_secret_manager_are_asked_for_by_gcloud_or_found_in_the_folder_of_a_pod) {
  write_job("secret-manager:my-project/hub/7");
  systole_.write("bin/gcloud", "#!/bin/sh\necho \"$*\" >asked\ncat the-secret\n");
  std::filesystem::permissions(systole_.folder() / "bin/gcloud", std::filesystem::perms::owner_all);
  expect_only_ranks_have_it(systole_.shell("PATH=$PWD/bin:$PATH \"$SYSTOLE\" run job.yaml --ranks 1"));
  EXPECT_EQ(read_text_file((systole_.folder() / "asked").string()).value(),
            "secrets versions access 7 --secret=hub --project=my-project --quiet\n");
  std::filesystem::create_directory(systole_.folder() / "pod");
  std::filesystem::create_symlink(path(), systole_.folder() / "pod/TOKEN");
  const Captured pod = systole_.shell("SYSTOLE_SECRETS=$PWD/pod \"$SYSTOLE\" run job.yaml --ranks 1");
  EXPECT_EQ(pod.exit.code, 0) << pod.err;
  EXPECT_FALSE(has(pod.out + pod.err, kPlanted));
}

TEST_F(Secrets, of_a_model_are_in_its_environment_alone) {
  systole_.write(
      "linear.yaml",
      "systole: 1\nname: line\nmodel: { family: mlp, inputs: 4, hidden: [], outputs: 1, loss: squared_error }\n"
      "data: { kind: linear, rows: 64, held_out_rows: 16 }\ntrain: { batch: 8, steps: 3, "
      "optimizer: { kind: sgd, rate: 0.01 } }\nsecrets: { TOKEN: 'file:" +
          path() + "' }\n");
  const Captured done = systole_.run({"run", "linear.yaml", "--backend", "reference"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_FALSE(has(done.out + done.err, kPlanted));
  EXPECT_EQ(files_with(kPlanted, systole_.folder()), std::vector<std::string>());
}

TEST_F(Secrets, what_is_rendered_names_where_they_stand) {
  write_job("file:" + path());
  const Captured slurm = systole_.run({"render", "job.yaml", "--on", "slurm"});
  EXPECT_EQ(slurm.exit.code, 0) << slurm.err;
  EXPECT_EQ(files_with(kPlanted, systole_.folder()), std::vector<std::string>());
}

TEST_F(Secrets, what_is_not_there_or_open_to_others_is_refused_without_a_word_of_it) {
  const auto refuses = [&](const std::string& reference, int code, const std::string& part) {
    write_job(reference);
    const Captured refused = systole_.run({"run", "job.yaml", "--ranks", "1"});
    EXPECT_EQ(refused.exit.code, code) << refused.err;
    EXPECT_TRUE(has(refused.err, part)) << refused.err;
    EXPECT_TRUE(has(refused.err, "TOKEN")) << refused.err;
    EXPECT_FALSE(has(refused.out + refused.err, kPlanted)) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "runs")) << "nothing was started";
  };
  refuses("env:NOT_THERE", 3, "no variable NOT_THERE in the environment that starts it");
  refuses("file:/not/there", 3, "there is no file");
  refuses("kubernetes:hub/token", 3, "is there in a pod alone");
  refuses("file:" + systole_.folder().string(), 2, "is a folder, not a file");
  using std::filesystem::perms;
  std::filesystem::permissions(path(), perms::owner_read | perms::group_read);
  refuses("file:" + path(), 2, "may be read by others than its owner");
  std::filesystem::permissions(path(), perms::owner_read | perms::owner_write);
  systole_.write("the-secret", "\n");
  refuses("file:" + path(), 2, "there is nothing in it");
  systole_.write("bin/gcloud", "#!/bin/sh\necho " + kPlanted + " >&2\nexit 1\n");
  std::filesystem::permissions(systole_.folder() / "bin/gcloud", perms::owner_all);
  write_job("secret-manager:p/hub");
  const Captured refused = systole_.shell("PATH=$PWD/bin:$PATH \"$SYSTOLE\" run job.yaml --ranks 1");
  EXPECT_EQ(refused.exit.code, 3);
  EXPECT_TRUE(has(refused.err, "gcloud may not read projects/p/secrets/hub/versions/latest")) << refused.err;
  EXPECT_FALSE(has(refused.out + refused.err, kPlanted)) << "what gcloud says may hold it";
}

// A secret typed into the workload instead of a reference does not occur in messages.
TEST_F(Secrets, a_secret_in_the_workload_is_refused_without_a_word_of_it) {
  systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: [sh]\nsecrets: { TOKEN: " + kPlanted + " }\n");
  for (const char* command : {"run", "render", "plan"}) {
    std::vector<std::string> words = {command, "job.yaml"};
    if (words[0] == "render") words.insert(words.end(), {"--on", "slurm"});
    const Captured refused = systole_.run(words);
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_TRUE(has(refused.err, "the secret TOKEN is no reference")) << refused.err;
    EXPECT_FALSE(has(refused.out + refused.err, kPlanted)) << refused.err;
  }
}

}  // namespace
}  // namespace systole::cli
