#include "ground/store/content_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

std::string keys_of(ContentCache& cache) {
  std::string keys;
  for (const ContentCache::Entry& entry : cache.list().value()) keys += entry.key;
  return keys;
}

TEST(ContentCache, gives_back_what_it_was_given) {
  const std::unique_ptr<Store> store = make_memory_store();
  ContentCache cache(*store, kMiB, ".bin");
  EXPECT_FALSE(cache.find("a"));
  const std::string value("not\0text\n", 9);
  cache.keep("a", value).value();
  cache.keep("empty", "").value();
  EXPECT_EQ(cache.find("a"), value);
  EXPECT_EQ(cache.find("empty"), "");
  cache.keep("a", "another").value();
  EXPECT_EQ(cache.find("a"), "another");
  cache.remove("a");
  EXPECT_FALSE(cache.find("a"));
}

// Whichever byte is lost or changed, the file is rejected and removed.
TEST(ContentCache, what_is_torn_is_removed) {
  const std::unique_ptr<Store> store = make_memory_store();
  ContentCache cache(*store, kMiB, "");
  cache.keep("a", "the value of a").value();
  const std::string whole = read_text(*store, "a").value();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_whole(*store, "a", whole.substr(0, length)).value();
    EXPECT_FALSE(cache.find("a")) << length;
    EXPECT_FALSE(store->exists("a").value()) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = changed[at] == 'z' ? 'y' : 'z';
    write_whole(*store, "a", changed).value();
    EXPECT_FALSE(cache.find("a")) << at;
  }
}

TEST(ContentCache, what_was_used_least_lately_goes_first) {
  const std::unique_ptr<Store> store = make_memory_store();
  const std::string value(100, 'v');  // a file of 133 bytes
  ContentCache cache(*store, Bytes(450), ".x");
  for (const char* key : {"1", "2", "3"}) cache.keep(key, value).value();
  EXPECT_EQ(keys_of(cache), "321");
  EXPECT_TRUE(cache.find("1"));
  cache.keep("4", value).value();
  EXPECT_EQ(keys_of(cache), "413");
  store->remove("used").value();  // without it the eviction order is free, but the count is the same
  cache.keep("5", value).value();
  EXPECT_EQ(cache.list().value().size(), 3U);
  EXPECT_TRUE(cache.find("5"));
  // A value over the limit is not kept, and nothing is evicted for it.
  cache.keep("large", std::string(500, 'v')).value();
  EXPECT_FALSE(cache.find("large"));
  EXPECT_EQ(cache.list().value().size(), 3U);
  // A partial file of a dead writer goes before whole values.
  write_whole(*store, "6.x.77-0.part", std::string(200, 'p')).value();
  ContentCache(*store, Bytes(450), ".x").keep("5", value).value();
  EXPECT_FALSE(store->exists("6.x.77-0.part").value());
}

TEST(ContentCache, the_list_of_uses_stays_short) {
  const std::unique_ptr<Store> store = make_memory_store();
  ContentCache cache(*store, kMiB, "");
  const std::string first(32, '1'), second(32, '2');
  cache.keep(first, "1").value();
  cache.keep(second, "2").value();
  for (int i = 0; i < 4000; ++i) EXPECT_TRUE(cache.find(first));
  EXPECT_LE(store->size("used").value(), kKiB * 65);
  EXPECT_EQ(keys_of(cache), first + second);
}

TEST(ContentCache, on_a_full_disk_what_was_kept_stays) {
  FaultyStore store;
  ContentCache cache(store, kMiB, "");
  cache.keep("a", std::string(300, 'a')).value();
  store.limit_space(Bytes(600));
  const Status full = cache.keep("b", std::string(400, 'b'));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::no_space);
  EXPECT_FALSE(cache.find("b"));
  EXPECT_EQ(cache.find("a"), std::string(300, 'a'));
  for (const std::string& file : store.list("").value()) EXPECT_FALSE(file.ends_with(".part")) << file;
}

// Whichever call fails or is the last: each value is whole or absent.
TEST(ContentCache, after_any_fault_values_are_whole_or_absent) {
  for (std::int64_t n = 1; n <= 12; ++n) {
    FaultyStore store;
    ContentCache cache(store, kMiB, "");
    cache.keep("a", "old").value();
    store.inject(Fault::dies_before(store.changing_calls() + n, 10));
    try {
      cache.keep("a", "new").value();
      cache.keep("b", "second").value();
    } catch (const SimulatedCrash&) {}  // NOLINT(bugprone-empty-catch): what is left is what counts
    for (const Unsynced mode : {Unsynced::lost, Unsynced::kept, Unsynced::torn}) {
      const std::unique_ptr<Store> left = store.survivor(mode, static_cast<std::uint64_t>(n));
      ContentCache after(*left, kMiB, "");
      const std::optional<std::string> a = after.find("a"), b = after.find("b");
      EXPECT_TRUE(!a || *a == "old" || *a == "new") << n;
      EXPECT_TRUE(!b || *b == "second") << n;
    }
  }
}

// Two processes that keep, find and make room in one folder.
TEST(ContentCache, two_processes_share_a_folder) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("content-cache-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const auto work = [&] {
    const std::unique_ptr<Store> store = open_posix_store(folder.string()).value();
    ContentCache cache(*store, kKiB * 40, ".x");
    bool right = true;
    for (int i = 0; i < 300; ++i) {
      const std::string key = std::to_string(i % 7), value(static_cast<std::size_t>(4000 + 1000 * (i % 7)), key[0]);
      const std::optional<std::string> found = cache.find(key);
      right = right && (!found || *found == value);
      if (!found) (void)cache.keep(key, value);  // the other process may have evicted it
    }
    return right;
  };
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) ::_exit(work() ? 0 : 1);
  EXPECT_TRUE(work());
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(file.path().extension(), ".part");
    if (file.path().extension() == ".x") bytes += static_cast<std::int64_t>(file.file_size());
  }
  EXPECT_LE(bytes, 2 * 40 * 1024);  // each process makes room only for its own values
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace systole
