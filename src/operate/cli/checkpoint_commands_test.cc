// `systole ckpt reshard` and `public-key`, and runs whose checkpoints are encrypted and signed.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

constexpr const char* kKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr const char* kOther = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

Captured in_shell(const SystoleRunner& systole, const std::string& line) {
  return systole.shell(fmt::format("export KEY={} OTHER={}; {}", kKey, kOther, line));
}

std::string all_files(const std::filesystem::path& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

TEST(CheckpointCommands, reshard_keeps_the_state_and_changes_the_cut) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured made = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "mine"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  std::filesystem::copy(systole.folder() / "mine", systole.folder() / "before",
                        std::filesystem::copy_options::recursive);
  const Captured cut = systole.run({"ckpt", "reshard", "mine", "--mesh", "data=2", "--json"});
  ASSERT_EQ(cut.exit.code, 0) << cut.err;
  const Node told = parse_json(cut.out, "stdout").value();
  EXPECT_GE(told.find("chunks")->as_int().value(), 2) << "one for each rank at least";
  EXPECT_EQ(systole.run({"ckpt", "diff", "before", "mine"}).exit.code, 0);
  EXPECT_EQ(systole.run({"ckpt", "verify", "mine"}).exit.code, 0);
  const Captured wrong = systole.run({"ckpt", "reshard", "mine", "--mesh", "data=4", "--sharding", "*={nowhere}{}"});
  EXPECT_EQ(wrong.exit.code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("nowhere"), std::string::npos) << wrong.err;
}

TEST(CheckpointCommands, an_encrypted_run_goes_on_with_its_key_and_not_without) {
  const SystoleRunner systole;
  systole.write("job.yaml",
                std::string(kWorkload) + "checkpoint: { encryption_key: 'env:KEY', signing_key: 'env:KEY' }\n");
  const Captured made = in_shell(systole, "\"$SYSTOLE\" run job.yaml --backend reference --folder mine");
  ASSERT_EQ(made.exit.code, 0) << made.err;
  EXPECT_EQ(all_files(systole.folder() / "mine").find(kKey), std::string::npos) << "the key is nowhere in the run";
  EXPECT_EQ(in_shell(systole, "\"$SYSTOLE\" ckpt show mine").exit.code, 0);
  EXPECT_EQ(in_shell(systole, "\"$SYSTOLE\" resume mine --set train.steps=6").exit.code, 0);

  const Captured none = systole.run({"resume", "mine", "--set", "train.steps=8"});
  EXPECT_NE(none.exit.code, 0);
  EXPECT_NE(none.err.find("the key env:KEY is not there"), std::string::npos) << none.err;
  const Captured other = in_shell(systole, "KEY=$OTHER \"$SYSTOLE\" resume mine --set train.steps=8");
  EXPECT_NE(other.exit.code, 0);
  EXPECT_NE(other.err.find("wrong key"), std::string::npos) << other.err;

  // The bare folder, as copied to another machine.
  const Captured shown = systole.run({"ckpt", "verify", "mine/checkpoints"});
  EXPECT_EQ(shown.exit.code, 0) << "hashes need no key: " << shown.err;
  const Captured numbers =
      in_shell(systole, "\"$SYSTOLE\" ckpt diff mine/checkpoints mine/checkpoints --encryption-key env:KEY");
  EXPECT_EQ(numbers.exit.code, 0) << numbers.err;
  EXPECT_NE(systole.run({"ckpt", "diff", "mine/checkpoints", "mine/checkpoints"}).err.find("encrypted"),
            std::string::npos);

  const Captured open = in_shell(systole, "\"$SYSTOLE\" ckpt public-key env:KEY");
  ASSERT_EQ(open.exit.code, 0) << open.err;
  const std::string key = open.out.substr(0, 64);
  EXPECT_EQ(systole.run({"ckpt", "show", "mine/checkpoints", "--trusted-key", key}).exit.code, 0);
  const Captured untrusted = systole.run({"ckpt", "show", "mine/checkpoints", "--trusted-key", std::string(64, 'a')});
  EXPECT_NE(untrusted.exit.code, 0);
  EXPECT_NE(untrusted.err.find("is signed by " + key), std::string::npos) << untrusted.err;
}

// A new key cannot read existing checkpoints, so only a run that begins gets a hint how to create one.
TEST(CheckpointCommands, a_key_that_is_not_there_is_made_by_a_run_that_begins_alone) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { encryption_key: 'env:KEY' }\n");
  const Captured begins = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "mine"});
  EXPECT_NE(begins.exit.code, 0);
  EXPECT_NE(begins.err.find("; make one and keep it: without it no checkpoint opens\n"), std::string::npos)
      << begins.err;
  EXPECT_NE(begins.err.find("  hint: export KEY=$(openssl rand -hex 32)\n"), std::string::npos) << begins.err;
  const Captured made = in_shell(systole, "\"$SYSTOLE\" run job.yaml --backend reference --folder mine");
  ASSERT_EQ(made.exit.code, 0) << made.err;

  const std::string remedy = "  hint: export KEY with the value that the run was begun with\n";
  for (const char* words :
       {"resume mine --set train.steps=8", "ckpt show mine", "ckpt diff mine mine", "ckpt export mine out.safetensors",
        "ckpt reshard mine --mesh data=2", "ckpt show mine/checkpoints --encryption-key env:KEY"}) {
    const Captured none = systole.shell(fmt::format("\"$SYSTOLE\" {}", words));
    EXPECT_EQ(none.exit.code, 2) << words << ": " << none.err;
    EXPECT_NE(none.err.find("error: the key env:KEY is not there: no such environment variable\n" + remedy),
              std::string::npos)
        << words << ": " << none.err;
    const Captured wrong = in_shell(systole, fmt::format("KEY=$OTHER \"$SYSTOLE\" {}", words));
    EXPECT_EQ(wrong.exit.code, 2) << words << ": " << wrong.err;
    EXPECT_NE(wrong.err.find("error: wrong key: this checkpoint was encrypted with key "), std::string::npos)
        << words << ": " << wrong.err;
    EXPECT_NE(wrong.err.find(remedy), std::string::npos) << words << ": " << wrong.err;
  }
  const Captured listed = in_shell(systole, "KEY=$OTHER \"$SYSTOLE\" ckpt list mine");
  EXPECT_NE(listed.out.find("cannot be read: wrong key: "), std::string::npos) << listed.out;
  EXPECT_EQ(listed.out.find("0 B"), std::string::npos) << "nothing is known of it\n" << listed.out;
  EXPECT_EQ(listed.err, "hint: export KEY with the value that the run was begun with\n");
  const Captured verified = in_shell(systole, "KEY=$OTHER \"$SYSTOLE\" ckpt verify mine");
  EXPECT_EQ(verified.exit.code, 1) << verified.err;
  EXPECT_NE(verified.out.find("step 4: cannot be read: "), std::string::npos) << verified.out;
  EXPECT_EQ(verified.err, "") << "none verifies";
  const Captured pinned = in_shell(systole, "KEY=$OTHER \"$SYSTOLE\" resume mine --pin-isa");
  EXPECT_NE(pinned.err.find("error: wrong key: "), std::string::npos) << pinned.err;
}

// The hint is a valid shell command.
TEST(CheckpointCommands, the_hint_of_a_key_file_is_a_command_alone) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { encryption_key: 'file:my key' }\n");
  const Captured begins = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "mine"});
  EXPECT_EQ(begins.exit.code, 2) << begins.err;
  EXPECT_NE(begins.err.find("  hint: (umask 077; openssl rand -hex 32 > 'my key')\n"), std::string::npos) << begins.err;
}

// A run that cannot save is refused: it creates no folder, and reports each key at its position.
TEST(CheckpointCommands, a_run_without_its_keys_takes_no_folder) {
  const SystoleRunner systole;
  systole.write("job.yaml",
                std::string(kWorkload) + "checkpoint:\n  encryption_key: 'env:KEY'\n  signing_key: 'env:SHORT'\n");
  for (const char* more : {"", " --ranks 2 --in-process", " --ranks 2"}) {
    const Captured got =
        systole.shell(fmt::format("SHORT=12 \"$SYSTOLE\" run job.yaml --backend reference --folder mine{}", more));
    EXPECT_EQ(got.exit.code, 2) << more << got.err;
    EXPECT_NE(got.err.find("error: checkpoint.encryption_key: the key env:KEY is not there"), std::string::npos)
        << more << got.err;
    EXPECT_EQ(got.err.find("job.yaml:10:"), 0u) << more << got.err;
    EXPECT_NE(got.err.find("error: checkpoint.signing_key: the key env:SHORT is no key"), std::string::npos)
        << more << got.err;
    EXPECT_FALSE(std::filesystem::exists(systole.folder() / "mine")) << more;
  }
  const Captured checked = systole.run({"check", "job.yaml"});
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_NE(checked.err.find("warning: checkpoint.encryption_key: the key env:KEY is not there"), std::string::npos)
      << checked.err;
  EXPECT_NE(checked.err.find("  hint: export KEY=$(openssl rand -hex 32)\n"), std::string::npos) << checked.err;
}

TEST(CheckpointCommands, a_secret_in_the_workload_is_refused) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { encryption_key: " + kKey + " }\n");
  const Captured got = systole.run({"plan", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(got.exit.code, 2) << got.err;
  EXPECT_NE(got.err.find("this is not env:NAME or file:PATH"), std::string::npos) << got.err;
}

}  // namespace
}  // namespace systole::cli
