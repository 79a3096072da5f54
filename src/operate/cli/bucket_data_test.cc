// Training on text in gs:// and s3://: killed and resumed, it ends as on the same files of this machine.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "ground/base/hash.h"
#include "ground/base/testing/files.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

class BucketData : public testing::Test {
 protected:
  BucketData() {
    for (int shard = 0; shard < 3; ++shard) {
      std::string text;
      for (int i = 0; i < 120; ++i)
        text += fmt::format("word {} of shard {} that goes on for a while, in line {}\n", i * 7 % 50, shard, i);
      const std::string name = fmt::format("texts/shard-{}.txt", shard);
      systole_.write(name, text);
      gcs_.store(name, text);
      s3_.put(name, text);
    }
  }
  Captured run(const std::string& words) {
    return systole_.shell(
        fmt::format("HOME=\"$PWD\" STORAGE_EMULATOR_HOST={} AWS_ENDPOINT_URL={} AWS_ACCESS_KEY_ID={} "
                    "AWS_SECRET_ACCESS_KEY='{}' exec \"$SYSTOLE\" {}",
                    gcs_.url(), s3_.url(), S3Twin::id(), S3Twin::secret(), words));
  }
  // NAME.yaml, with its own data folder and cache.
  void write(const std::string& name, const std::string& files, const std::string& more = "") {
    systole_.write(
        name + ".yaml",
        fmt::format("systole: 1\nname: {0}\nmodel: {{ family: gpt, layers: 1, width: 16, heads: 2, context: "
                    "32 }}\ndata: {{ train: {{ files: {1} }}, held_out: {{ fraction: 10% }}, folder: "
                    "data-{0}, tokenizer: {{ vocabulary: 300 }}{2} }}\ntrain: {{ batch: 2, steps: 6, "
                    "optimizer: {{ kind: sgd, rate: 1e-2 }}, precision: f32 }}\ncheckpoint: {{ every: 2 }}\n",
                    name, files, more));
  }
  std::string key_of(const Captured& shown) const {
    const std::size_t at = shown.out.find("dataset ");
    return at == std::string::npos ? shown.out + shown.err : shown.out.substr(at, 24);
  }
  void expect_same_as_local(const std::string& name) {
    EXPECT_EQ(key_of(run("data show " + name + ".yaml")), key_of(run("data show local.yaml")));
    const Captured diff = run(fmt::format("ckpt diff {}@6 local@6", name));
    EXPECT_EQ(diff.exit.code, 0) << diff.out << diff.err;
  }

  GcsTwin gcs_;
  S3Twin s3_;
  SystoleRunner systole_;
};

TEST_F(BucketData, killed_and_resumed_it_ends_as_on_local_files) {
  write("local", "texts/shard-*.txt");
  ASSERT_EQ(run("run local.yaml --backend reference --folder local").exit.code, 0);
  write("google", "[\"gs://bucket/texts/shard-*.txt\"]");
  EXPECT_EQ(run("check google.yaml --backend reference").exit.code, 0);
  EXPECT_EQ(gcs_.count(), 0) << "check asks no server";
  EXPECT_EQ(run("run google.yaml --backend reference --folder google --inject kill=update@4").exit.signal, SIGKILL);
  std::filesystem::remove_all(systole_.folder() / "data-google");  // with the cache: it is fetched again
  const Captured on = run("resume google --backend reference");
  ASSERT_EQ(on.exit.code, 0) << on.err;
  expect_same_as_local("google");

  write("amazon", "[texts/shard-0.txt, \"s3://twin/texts/shard-[12].txt\"]");
  EXPECT_EQ(run("run amazon.yaml --backend reference --folder amazon --inject kill=update@4").exit.signal, SIGKILL);
  const Captured again = run("resume amazon --backend reference");
  ASSERT_EQ(again.exit.code, 0) << again.err;
  expect_same_as_local("amazon");
}

TEST_F(BucketData, the_cache_is_shared_and_its_bytes_may_go) {
  write("first", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared }");
  ASSERT_EQ(run("data build first.yaml").exit.code, 0);
  const std::int64_t asked = gcs_.count();
  write("second", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared }, seed: 3");
  ASSERT_EQ(run("data build second.yaml").exit.code, 0);
  const std::vector<GcsTwinRequest> requests = gcs_.requests();
  for (std::size_t i = static_cast<std::size_t>(asked); i < requests.size(); ++i)
    EXPECT_FALSE(requests[i].query.contains("alt")) << "no bytes again: " << requests[i].target;
  // Without its bytes, what is built is opened by the hashes that are known.
  for (const auto& file : std::filesystem::directory_iterator(systole_.folder() / "shared"))
    if (file.path().extension() == ".bytes") std::filesystem::remove(file.path());
  const Captured built = run("data build first.yaml");
  EXPECT_NE(built.err.find("all of it was there already"), std::string::npos) << built.err;
  write("small", "\"gs://bucket/texts/*.txt\"", ", cache: { limit: 1KiB }");
  const Captured small = run("data build small.yaml");
  EXPECT_EQ(small.exit.code, 1) << small.err;
  EXPECT_NE(small.err.find("its limit is 1"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("hint: data.cache.limit: 1GiB"), std::string::npos) << small.err;
}

TEST_F(BucketData, what_a_disk_changed_in_the_cache_is_fetched_again) {
  write("first", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared }");
  const Captured first = run("data build first.yaml");
  ASSERT_EQ(first.exit.code, 0) << first.err;
  EXPECT_EQ(first.err.find("other bytes"), std::string::npos) << first.err;
  const std::string text = text_of(systole_.folder() / "texts/shard-1.txt");
  const std::filesystem::path kept = systole_.folder() / "shared" / (to_hex(hash128(text)) + ".bytes");
  std::string damaged = text;
  damaged.replace(10, 3, "XXX");
  ASSERT_EQ(text_of(kept), text);
  std::ofstream(kept) << damaged;
  const std::size_t asked = gcs_.requests().size();
  write("second", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared }");
  const Captured second = run("data build second.yaml --set data.folder=data-second");
  ASSERT_EQ(second.exit.code, 0) << second.err;
  EXPECT_EQ(key_of(second), key_of(first));
  EXPECT_NE(second.err.find("data.cache: 1 object in '"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("had other bytes than were fetched: dropped, and fetched again"), std::string::npos);
  EXPECT_EQ(text_of(kept), text);
  int fetched = 0;
  const std::vector<GcsTwinRequest> requests = gcs_.requests();
  for (std::size_t i = asked; i < requests.size(); ++i) fetched += requests[i].query.contains("alt") ? 1 : 0;
  EXPECT_EQ(fetched, 1);
  const std::string name = key_of(first).substr(8) + "/train-00000.tokens";
  EXPECT_EQ(text_of(systole_.folder() / "data-second" / name), text_of(systole_.folder() / "data-first" / name));
}

TEST_F(BucketData, what_the_cache_had_and_what_came_is_told) {
  write("cold", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared }");
  const Captured cold = run("--json run cold.yaml --backend reference --folder cold");
  ASSERT_EQ(cold.exit.code, 0) << cold.err;
  EXPECT_NE(cold.err.find("objects of data: 3 fetched (19.6 KiB)"), std::string::npos) << cold.err;
  EXPECT_NE(cold.out.find("\"misses\": 3"), std::string::npos) << cold.out;
  EXPECT_NE(cold.out.find("\"memory_hits\": 0"), std::string::npos) << cold.out;
  const std::string why = run("why cold").out;
  const std::size_t startup = why.find("startup");
  const std::string row = why.substr(startup, why.find('\n', startup) - startup);
  for (const char* part : {"← data: list ", ", fetch ", " (objects: 3 fetched (19.6 KiB)), build ", ", open "})
    EXPECT_NE(row.find(part), std::string::npos) << part << ": " << row;
  const Captured warm =
      run("run cold.yaml --backend reference --folder warm --set data.folder=data-warm --set data.cache.folder=shared");
  EXPECT_NE(warm.err.find("objects of data: 3 in the cache (19.6 KiB)"), std::string::npos) << warm.err;
  const Captured built = run("--json data build cold.yaml --set data.folder=data-third");
  EXPECT_NE(built.out.find("\"disk_hits\": 3"), std::string::npos) << built.out;
  EXPECT_EQ(run("why warm").out.find("fetched"), std::string::npos);
}

TEST_F(BucketData, objects_in_memory_are_read_there) {
  const std::filesystem::path memory = fmt::format("/dev/shm/systole-{}/objects", ::geteuid());
  write("first", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: shared, memory: 16MiB }");
  const Captured first = run("data build first.yaml");
  ASSERT_EQ(first.exit.code, 0) << first.err;
  std::vector<std::filesystem::path> ours;
  for (int shard = 0; shard < 3; ++shard) {
    const std::string text = text_of(systole_.folder() / fmt::format("texts/shard-{}.txt", shard));
    ours.push_back(memory / (to_hex(hash128(text)) + ".bytes"));
    EXPECT_EQ(text_of(ours.back()), text);
  }
  const std::int64_t asked = gcs_.count();
  write("second", "\"gs://bucket/texts/*.txt\"", ", cache: { folder: empty, memory: 16MiB }, seed: 3");
  ASSERT_EQ(run("data build second.yaml").exit.code, 0);
  const std::vector<GcsTwinRequest> requests = gcs_.requests();
  for (std::size_t i = static_cast<std::size_t>(asked); i < requests.size(); ++i)
    EXPECT_FALSE(requests[i].query.contains("alt")) << "no bytes again: " << requests[i].target;
  for (const std::filesystem::path& file : ours) std::filesystem::remove(file);

  write("large", "\"gs://bucket/texts/*.txt\"", ", cache: { memory: 900TiB }");
  const Captured checked = run("check large.yaml --backend reference");
  EXPECT_EQ(checked.exit.code, 0) << checked.err;
  EXPECT_NE(checked.err.find("data.cache.memory: 900 TiB, and /dev/shm has "), std::string::npos) << checked.err;
}

TEST_F(BucketData, a_cache_of_a_text_that_is_here_is_said_to_keep_nothing) {
  for (const auto& [cache, key] : {std::pair("{ memory: 16MiB }", "data.cache.memory"),
                                   {"{ limit: 1GiB }", "data.cache.limit"},
                                   {"{ limit: 1GiB, memory: 900TiB }", "data.cache.memory"}}) {
    write("here", "texts/*.txt", fmt::format(", cache: {}", cache));
    const std::string said = fmt::format("{}: it keeps objects of buckets, and the text is read where it is", key);
    for (const char* command : {"check", "plan", "run"}) {
      const Captured told = run(fmt::format("{} here.yaml --backend reference", command));
      EXPECT_EQ(told.exit.code, 0) << told.err;
      EXPECT_NE(told.err.find(said), std::string::npos) << command << told.err;
      EXPECT_NE(told.err.find("hint: take it out, or name the text by its URI"), std::string::npos) << told.err;
    }
  }
  write("there", "\"gs://bucket/texts/*.txt\"", ", cache: { limit: 1GiB }");
  const Captured told = run("check there.yaml --backend reference");
  EXPECT_EQ(told.err.find("it keeps objects of buckets"), std::string::npos) << told.err;
}

TEST_F(BucketData, text_that_changed_is_refused_by_its_name) {
  write("google", "\"gs://bucket/texts/*.txt\"");
  EXPECT_EQ(run("run google.yaml --backend reference --folder google --inject kill=update@4").exit.signal, SIGKILL);
  gcs_.store("texts/shard-1.txt", "other words\n");
  const Captured changed = run("resume google --backend reference");
  EXPECT_EQ(changed.exit.code, 2) << changed.err;
  EXPECT_NE(changed.err.find("gs://bucket/texts/shard-1.txt"), std::string::npos) << changed.err;
  write("absent", "\"gs://bucket/text/*.txt\"");
  const Captured absent = run("data build absent.yaml");
  EXPECT_EQ(absent.exit.code, 2);
  EXPECT_NE(absent.err.find("nothing matches 'gs://bucket/text/*.txt'"), std::string::npos) << absent.err;
  EXPECT_NE(absent.err.find("absent.yaml:4:"), std::string::npos) << absent.err;
}

}  // namespace
}  // namespace systole::cli
