#include "ground/store/object_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <thread>

#include "ground/base/testing/files.h"
#include "ground/store/store.h"
#include "ground/store/testing/faulty_objects.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"

namespace systole {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::string> paths_of(const ObjectList& listing) {
  std::vector<std::string> paths;
  for (const ObjectEntry& object : listing.objects) paths.push_back(object.path);
  return paths;
}

using Names = std::vector<std::string>;

std::unique_ptr<ObjectStore> open_local(const std::string& folder) {
  return open_store(StoreUri::local(folder)).value();
}

// A store and the files below it.
struct Made {
  std::unique_ptr<Store> files;
  std::unique_ptr<ObjectStore> under, store;
  std::shared_ptr<void> server = nullptr;  // of a cloud
};

struct Kind {
  const char* name;
  std::function<Made(const std::string& folder)> make;
};

// The contract: every store behaves the same, seen through the interface.
class AnyObjectStore : public testing::TestWithParam<Kind> {
 protected:
  ObjectStore& store() { return *made_.store; }
  std::string text(std::string_view path) { return get_text(store(), path).value(); }
  std::unique_ptr<Upload> upload(std::string_view path, std::string_view bytes) {
    std::unique_ptr<Upload> upload = store().start_upload(path).value();
    upload->append(bytes_of(bytes)).value();
    return upload;
  }

  TemporaryFolder folder_;
  Made made_ = GetParam().make(folder_.path());
};

Made on_faulty_disk(const std::string&) {
  Made made{std::make_unique<FaultyStore>(), nullptr, nullptr};
  made.store = objects_in(*made.files);
  return made;
}

Made faulty_cloud(const std::string&) {
  Made made{nullptr, make_memory_objects(), nullptr};
  made.store = std::make_unique<FaultyObjects>(*made.under);
  return made;
}

Made on_gcs(const std::string&) {
  const auto twin = std::make_shared<GcsTwin>();
  twin->page_size(2);
  return {nullptr, nullptr, open_store({"gs", "bucket/some/folder"}, twin->access()).value(), twin};
}

Made on_s3(const std::string&) {
  const auto twin = std::make_shared<S3Twin>();
  return {nullptr, nullptr, open_store({"s3", "twin/some/folder"}, twin->access()).value(), twin};
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, AnyObjectStore,
    testing::Values(Kind{"posix",
                         [](const std::string& folder) {
                           return Made{nullptr, nullptr, open_local(folder)};
                         }},
                    Kind{"memory",
                         [](const std::string&) {
                           return Made{nullptr, nullptr, open_store(read_store_uri("memory:").value()).value()};
                         }},
                    Kind{"faulty_disk", on_faulty_disk}, Kind{"faulty_cloud", faulty_cloud}, Kind{"gcs", on_gcs},
                    Kind{"s3", on_s3}),
    [](const auto& kind) { return kind.param.name; });

TEST_P(AnyObjectStore, puts_gets_and_replaces) {
  const Generation first = store().put("a/b/x", "hello world").value();
  EXPECT_EQ(text("a/b/x"), "hello world");
  EXPECT_EQ(store().size("a/b/x")->count(), 11);
  std::string middle(5, ' ');
  store().get("a/b/x", 6, std::as_writable_bytes(std::span(middle))).value();
  EXPECT_EQ(middle, "world");
  EXPECT_EQ(store().get_whole("a/b/x")->generation, first);
  const Generation second = store().put("a/b/x", "").value();
  EXPECT_NE(second, first);
  EXPECT_EQ(text("a/b/x"), "");
  for (const Durability durability : {Durability::when_settled, Durability::none}) {
    store().put("a/b/x", "again", {}, durability).value();
    EXPECT_EQ(text("a/b/x"), "again");
  }
  store().settle("a/b").value();
  store().settle("").value();
  store().settle("nothing/here").value();
}

TEST_P(AnyObjectStore, says_what_is_absent_or_short) {
  std::vector<std::byte> four(4);
  EXPECT_EQ(store().size("no").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store().get("no", 0, four).error().kind, ErrorKind::not_found);
  EXPECT_EQ(store().get_whole("no").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store().get_whole("no/deeper").error().kind, ErrorKind::not_found);
  EXPECT_FALSE(*has_object(store(), "no"));
  EXPECT_TRUE(store().remove("no").ok());
  EXPECT_TRUE(store().remove("no/deeper").ok());
  store().put("x", "abc").value();
  EXPECT_TRUE(*has_object(store(), "x"));
  EXPECT_EQ(store().get("x", 0, four).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(store().get("x", 9, four).error().kind, ErrorKind::corrupt);
  EXPECT_TRUE(store().get("x", 3, {}).ok());
  EXPECT_EQ(store().get_whole("x", Bytes(2)).error().kind, ErrorKind::does_not_fit);
}

TEST_P(AnyObjectStore, has_no_folders) {
  store().put("a/b/x", "1").value();
  EXPECT_FALSE(*has_object(store(), "a"));
  EXPECT_FALSE(*has_object(store(), "a/b"));
  EXPECT_EQ(store().get_whole("a/b").error().kind, ErrorKind::not_found);
  store().remove("a/b/x").value();
  EXPECT_EQ(*store().list(""), ObjectList());
  EXPECT_EQ(*store().list("a/b/", ListDepth::one_level), ObjectList());
  store().put("a", "now an object").value();
  EXPECT_EQ(text("a"), "now an object");
}

TEST_P(AnyObjectStore, refuses_paths_that_leave_it) {
  for (const char* path : {"/etc/passwd", "../x", "a/../x", "a//b", "./x", "a/.", "..", "", "a/", ".systole-x"}) {
    EXPECT_EQ(store().put(path, "x").error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store().size(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store().get_whole(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store().remove(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store().start_upload(path).error().kind, ErrorKind::invalid) << path;
  }
  for (const char* prefix : {"/", "../", "a//", "./a/"}) {
    EXPECT_EQ(store().list(prefix).error().kind, ErrorKind::invalid) << prefix;
    EXPECT_EQ(store().abort_uploads(prefix).error().kind, ErrorKind::invalid) << prefix;
  }
}

TEST_P(AnyObjectStore, puts_if_absent) {
  store().put("d/x", "first", Precondition::absent()).value();
  EXPECT_EQ(store().put("d/x", "second", Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(text("d/x"), "first");
  store().remove("d/x").value();
  store().put("d/x", "third", Precondition::absent()).value();
  EXPECT_EQ(text("d/x"), "third");
  EXPECT_EQ(paths_of(*store().list("")), Names{"d/x"});
}

TEST_P(AnyObjectStore, puts_if_the_generation_is_the_one_that_was_read) {
  EXPECT_EQ(store().put("d/p", "x", Precondition::is({"1"})).error().kind, ErrorKind::busy) << "nothing is there";
  const Generation one = store().put("d/p", "one").value();
  const Generation two = store().put("d/p", "two", Precondition::is(one)).value();
  EXPECT_EQ(store().put("d/p", "stale", Precondition::is(one)).error().kind, ErrorKind::busy);
  EXPECT_EQ(text("d/p"), "two");
  EXPECT_EQ(store().get_whole("d/p")->generation, two);
  EXPECT_EQ(store().remove("d/p", Precondition::is(one)).error().kind, ErrorKind::busy);
  EXPECT_EQ(store().remove("d/p", Precondition::absent()).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(*has_object(store(), "d/p"));
  store().remove("d/p", Precondition::is(two)).value();
  EXPECT_FALSE(*has_object(store(), "d/p"));
  EXPECT_EQ(store().remove("d/p", Precondition::is(two)).error().kind, ErrorKind::busy);
  EXPECT_EQ(*store().list(""), ObjectList());
}

TEST_P(AnyObjectStore, uploads_are_absent_until_they_are_complete) {
  std::unique_ptr<Upload> begun = upload("u/x", "hello ");
  EXPECT_EQ(*store().list(""), ObjectList());
  begun->append({}).value();
  begun->append(bytes_of("world")).value();
  begun->complete().value();
  EXPECT_EQ(text("u/x"), "hello world");

  upload("u/x", "replaced")->complete(Precondition::always(), Durability::when_settled).value();
  EXPECT_EQ(text("u/x"), "replaced");
  upload("u/y", "never")->abort().value();
  { const auto forgotten = upload("u/z", "never"); }
  EXPECT_EQ(paths_of(*store().list("")), Names{"u/x"});

  upload("u/unnamed", "by its hash")->complete_as("u/deeper/hash").value();
  EXPECT_EQ(text("u/deeper/hash"), "by its hash");
  EXPECT_EQ(paths_of(*store().list("")), (Names{"u/deeper/hash", "u/x"}));
}

TEST_P(AnyObjectStore, uploads_have_conditions) {
  const Generation one = store().put("c", "one").value();
  std::unique_ptr<Upload> begun = upload("c", "two");
  EXPECT_EQ(begun->complete(Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(text("c"), "one");
  begun->complete(Precondition::is(one)).value();
  EXPECT_EQ(text("c"), "two");
  EXPECT_EQ(upload("c", "stale")->complete(Precondition::is(one)).error().kind, ErrorKind::busy);
  EXPECT_EQ(upload("c", "x")->complete_as("../c").error().kind, ErrorKind::invalid);
  upload("d", "new")->complete(Precondition::absent()).value();
  EXPECT_EQ(paths_of(*store().list("")), (Names{"c", "d"}));
}

TEST_P(AnyObjectStore, uploads_of_others_are_aborted_by_prefix) {
  std::unique_ptr<Upload> in = upload("a/b/x", "12345"), other = upload("ab/x", "1");
  store().put("a/b/kept", "k").value();
  EXPECT_EQ(store().abort_uploads("a/")->count(), 5);
  EXPECT_EQ(in->complete().error().kind, ErrorKind::not_found);
  other->complete().value();
  EXPECT_EQ(paths_of(*store().list("")), (Names{"a/b/kept", "ab/x"}));
  EXPECT_EQ(store().abort_uploads("")->count(), 0);
  EXPECT_EQ(store().abort_uploads("no/such/")->count(), 0);
}

TEST_P(AnyObjectStore, lists_by_prefix_and_by_level) {
  for (const char* path : {"a/1", "a/2/x", "a/2/y", "a-b", "ab", "b/c/d/e"}) store().put(path, path).value();
  EXPECT_EQ(paths_of(*store().list("")), (Names{"a-b", "a/1", "a/2/x", "a/2/y", "ab", "b/c/d/e"}));
  EXPECT_EQ(paths_of(*store().list("a")), (Names{"a-b", "a/1", "a/2/x", "a/2/y", "ab"}));
  EXPECT_EQ(paths_of(*store().list("a/2/")), (Names{"a/2/x", "a/2/y"}));
  EXPECT_EQ(paths_of(*store().list("a/2/y")), Names{"a/2/y"});
  EXPECT_EQ(*store().list("no/such/"), ObjectList());
  const ObjectList top = store().list("", ListDepth::one_level).value();
  EXPECT_EQ(paths_of(top), (Names{"a-b", "ab"}));
  EXPECT_EQ(top.prefixes, (Names{"a/", "b/"}));
  EXPECT_EQ(top.objects[0].size, Bytes(3));
  const ObjectList below = store().list("a/", ListDepth::one_level).value();
  EXPECT_EQ(paths_of(below), Names{"a/1"});
  EXPECT_EQ(below.prefixes, Names{"a/2/"});
  EXPECT_EQ(store().list("b", ListDepth::one_level)->prefixes, Names{"b/"});
}

TEST_P(AnyObjectStore, one_of_eight_threads_puts_what_was_absent) {
  for (int round = 0; round < 20; ++round) {
    const std::string path = fmt::format("race/{}/x", round);
    std::atomic<int> won = 0, told = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const Result<Generation> put = store().put(path, std::to_string(t), Precondition::absent());
        won += put.ok();
        told += !put.ok() && put.error().kind == ErrorKind::exists;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(told, 7);
  }
}

// Increments the counter, with retries until it succeeds.
void count_up(ObjectStore& store, std::string_view path) {
  while (true) {
    const Versioned seen = store.get_whole(path).value();
    const std::string next = std::to_string(std::stoi(seen.bytes) + 1);
    const Result<Generation> put = store.put(path, next, Precondition::is(seen.generation), Durability::none);
    if (put.ok()) return;
    CHECK(put.error().kind == ErrorKind::busy, "{}", to_string(put.error()));
  }
}

TEST_P(AnyObjectStore, a_counter_loses_no_count) {
  store().put("counter", "0").value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) count_up(store(), "counter");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(text("counter"), "80");
}

TEST_P(AnyObjectStore, a_folder_made_before_its_objects_is_none_of_them) {
  ASSERT_TRUE(store().make_folder("a/b"));
  EXPECT_EQ(*store().list(""), ObjectList());
  ASSERT_TRUE(store().put("a/b/c", "1"));
  EXPECT_EQ(text("a/b/c"), "1");
  EXPECT_GT(store().free_space().value(), Bytes(0));
}

TEST(OpenStore, says_what_it_opens) {
  const TemporaryFolder folder;
  const StoreUri uri = read_store_uri("file://" + folder.path()).value();
  EXPECT_TRUE(uri.is_local() && uri.is_lasting());
  EXPECT_EQ(uri.path, folder.path());
  open_store(uri).value()->put("x", "1").value();
  EXPECT_EQ(*get_text(*open_local(folder.path()), "x"), "1");
  EXPECT_EQ(open_store(StoreUri::local(folder.path() + "/no")).error().kind, ErrorKind::not_found);
  EXPECT_EQ(open_store(StoreUri::local(folder.path() + "/x")).error().kind, ErrorKind::invalid);
  for (const char* wrong : {"file://host", "file:/x", "file://"})
    EXPECT_EQ(read_store_uri(wrong).error().kind, ErrorKind::invalid) << wrong;
  const StoreUri memory = read_store_uri("memory:").value();
  EXPECT_FALSE(memory.is_local() || memory.is_lasting());
  for (const char* path : {"a", "/a/b", "../a", "a b://c", "memory", "gs:bucket", ""}) {
    const StoreUri read = read_store_uri(path).value();
    EXPECT_TRUE(read.is_local() && read.path == path) << path;
  }
  const Result<StoreUri> other = read_store_uri("ftp://bucket/x");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::unsupported);
  EXPECT_NE(other.error().message.find("ftp://"), std::string::npos);
  EXPECT_NE(other.error().hint.find("gs://BUCKET"), std::string::npos) << other.error().hint;
  EXPECT_NE(other.error().hint.find("file:///path"), std::string::npos) << other.error().hint;
  EXPECT_EQ(other.error().hint.find("memory"), std::string::npos) << "it does not last";
}

// ---- posix

// Runs `work` in `count` child processes; returns how many of them exited with 0.
int processes(int count, const std::function<bool(int)>& work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work(i) ? 0 : 1);
    children.push_back(child);
  }
  int good = 0;
  for (const pid_t child : children) {
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child, "waitpid");
    good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return good;
}

TEST(PosixObjects, one_of_eight_processes_puts_what_was_absent) {
  const TemporaryFolder folder;
  const std::unique_ptr<ObjectStore> store = open_local(folder.path());
  for (int round = 0; round < 10; ++round) {
    const std::string path = fmt::format("race/{}", round);
    const int won = processes(
        8, [&](int i) { return store->put(path, std::to_string(i), Precondition::absent(), Durability::none).ok(); });
    EXPECT_EQ(won, 1);
  }
}

TEST(PosixObjects, a_counter_of_processes_loses_no_count) {
  const TemporaryFolder folder;
  const std::unique_ptr<ObjectStore> store = open_local(folder.path());
  store->put("p/counter", "0").value();
  EXPECT_EQ(processes(8,
                      [&](int) {
                        const std::unique_ptr<ObjectStore> own = open_local(folder.path());
                        for (int i = 0; i < 10; ++i) count_up(*own, "p/counter");
                        return true;
                      }),
            8);
  EXPECT_EQ(*get_text(*store, "p/counter"), "80");
}

// A killed process leaves a released lock and a temporary file that is not listed.
TEST(PosixObjects, a_killed_process_is_not_in_the_way) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> files = open_posix_store(folder.path()).value();
  const std::unique_ptr<ObjectStore> store = objects_in(*files);
  const Generation one = store->put("p", "one").value();
  EXPECT_EQ(processes(1,
                      [&](int) {
                        const auto lock = files->try_lock("");
                        const auto begun = store->start_upload("q").value();
                        begun->append(bytes_of("half")).value();
                        if (lock.ok()) ::raise(SIGKILL);
                        return true;
                      }),
            0);
  EXPECT_EQ(paths_of(*store->list("")), Names{"p"});
  store->put("p", "two", Precondition::is(one)).value();
  EXPECT_EQ(store->abort_uploads("")->count(), 4);
  EXPECT_EQ(*files->list(""), (Names{".systole-lock", "p"}));
}

TEST(PosixObjects, a_link_to_a_folder_stays) {
  const TemporaryFolder folder, elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() + "/far");
  const std::unique_ptr<ObjectStore> store = open_local(folder.path());
  store->put("far/x", "1").value();
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() + "/x"));
  EXPECT_EQ(store->list("", ListDepth::one_level)->prefixes, Names{"far/"});
  store->remove("far/x").value();
  store->abort_uploads("").value();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() + "/far"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path()));
}

// ---- a disk that fails

// At every crash point and for every outcome of unsynced data: the old object or the new one, whole. Leftovers are not
// listed and do not disturb.
void expect_whole_or_absent(const std::function<void(ObjectStore&)>& act, const std::string& before) {
  const std::string after = "new, and longer than before";
  const std::unique_ptr<Store> initial = make_memory_store();
  if (!before.empty()) objects_in(*initial)->put("d/a", before).value();
  FaultyStore counted(*initial);
  act(*objects_in(counted));
  ASSERT_GE(counted.changing_calls(), 6);
  for (std::int64_t call = 1; call <= counted.changing_calls(); ++call) {
    for (const Fault fault : {Fault::dies_before(call, 3), Fault::dies_after(call)}) {
      FaultyStore store(*initial);
      store.inject(fault);
      EXPECT_THROW(act(*objects_in(store)), SimulatedCrash);
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Unsynced mode = seed == 0 ? Unsynced::lost : seed == 1 ? Unsynced::kept : Unsynced::torn;
        const std::unique_ptr<Store> survivor = store.survivor(mode, seed);
        const std::unique_ptr<ObjectStore> objects = objects_in(*survivor);
        SCOPED_TRACE(fmt::format("call {} ({}), seed {}", call, store.calls().back(), seed));
        const Names paths = paths_of(*objects->list(""));
        ASSERT_TRUE(paths == Names{"d/a"} || (before.empty() && paths.empty()));
        if (!paths.empty()) {
          const std::string text = *get_text(*objects, "d/a");
          EXPECT_TRUE(text == after || (!before.empty() && text == before)) << text;
        }
        objects->abort_uploads("").value();
        EXPECT_EQ(survivor->list("d").ok(), !paths.empty());
        if (!paths.empty()) { EXPECT_EQ(*survivor->list("d"), Names{"a"}); }
      }
    }
  }
  FaultyStore whole(*initial);
  act(*objects_in(whole));
  EXPECT_EQ(*get_text(*objects_in(*whole.survivor(Unsynced::lost)), "d/a"), after);
}

TEST(ObjectsOnAFaultyDisk, put_is_whole_or_absent) {
  const auto put = [](ObjectStore& store) { store.put("d/a", "new, and longer than before").value(); };
  expect_whole_or_absent(put, "old");
  expect_whole_or_absent(put, "");
}

TEST(ObjectsOnAFaultyDisk, put_if_absent_is_whole_or_absent) {
  expect_whole_or_absent(
      [](ObjectStore& store) { store.put("d/a", "new, and longer than before", Precondition::absent()).value(); }, "");
}

TEST(ObjectsOnAFaultyDisk, put_if_generation_is_whole_or_absent) {
  expect_whole_or_absent(
      [](ObjectStore& store) {
        const Generation seen = store.get_whole("d/a").value().generation;
        store.put("d/a", "new, and longer than before", Precondition::is(seen)).value();
      },
      "old");
}

TEST(ObjectsOnAFaultyDisk, uploads_are_whole_or_absent) {
  expect_whole_or_absent(
      [](ObjectStore& store) {
        const std::unique_ptr<Upload> upload = store.start_upload("d/a").value();
        upload->append(bytes_of("new, and ")).value();
        upload->append(bytes_of("longer than before")).value();
        upload->complete(Precondition::absent()).value();
      },
      "");
}

TEST(ObjectsOnAFaultyDisk, what_is_settled_stays) {
  FaultyStore disk;
  const std::unique_ptr<ObjectStore> store = objects_in(disk);
  store->put("d/e/a", "1", {}, Durability::when_settled).value();
  EXPECT_FALSE(*has_object(*objects_in(*disk.survivor(Unsynced::lost)), "d/e/a"));
  store->settle("d/e").value();
  EXPECT_EQ(*get_text(*objects_in(*disk.survivor(Unsynced::lost)), "d/e/a"), "1");
  store->put("d/e/b", "2", {}, Durability::when_settled).value();
  store->put("d/e/c", "3").value();
  EXPECT_EQ(*get_text(*objects_in(*disk.survivor(Unsynced::lost)), "d/e/b"), "2");
}

TEST(ObjectsOnAFaultyDisk, a_full_disk_leaves_nothing_behind) {
  FaultyStore disk;
  const std::unique_ptr<ObjectStore> store = objects_in(disk);
  store->put("a", "old").value();
  disk.limit_space(Bytes(5));
  EXPECT_EQ(store->put("a", "much too long").error().kind, ErrorKind::no_space);
  {
    const std::unique_ptr<Upload> upload = store->start_upload("b").value();
    EXPECT_EQ(upload->append(bytes_of("much too long")).error().kind, ErrorKind::no_space);
  }
  EXPECT_EQ(*disk.list(""), Names{"a"});
  EXPECT_EQ(*get_text(*store, "a"), "old");
}

// ---- a cloud that fails

TEST(FaultyObjects, a_lost_answer_leaves_it_done) {
  const std::unique_ptr<ObjectStore> under = make_memory_objects();
  FaultyObjects store(*under);
  store.inject({ObjectFault::Kind::refused, 1});
  store.inject({ObjectFault::Kind::answer_lost, 2});
  EXPECT_EQ(store.put("a", "1", Precondition::absent()).error().kind, ErrorKind::io);
  EXPECT_FALSE(*has_object(store, "a"));
  EXPECT_EQ(store.put("a", "2", Precondition::absent()).error().kind, ErrorKind::io);
  EXPECT_EQ(*get_text(store, "a"), "2");
  EXPECT_EQ(store.put("a", "3", Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(store.changing_calls(), 3);
}

TEST(FaultyObjects, the_uploads_of_one_that_died_stay_begun) {
  const std::unique_ptr<ObjectStore> under = make_memory_objects();
  FaultyObjects store(*under);
  store.inject({ObjectFault::Kind::dies_after, 2});
  {
    const std::unique_ptr<Upload> upload = store.start_upload("a").value();
    EXPECT_THROW((void)upload->append(bytes_of("123")), SimulatedCrash);
  }
  EXPECT_THROW((void)store.size("a"), SimulatedCrash);
  EXPECT_EQ(*under->list(""), ObjectList());
  EXPECT_EQ(under->abort_uploads("")->count(), 3);
}

}  // namespace
}  // namespace systole
