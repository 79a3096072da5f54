#include "execute/checkpoint/reshard.h"

#include <gtest/gtest.h>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/testing/group_saves.h"
#include "ground/store/testing/faulty_objects.h"

namespace systole::checkpoint {
namespace {

ShardingOf cut_as(TinyCut cut, const Mesh& mesh) {
  return [cut, mesh](const TensorEntry& tensor) -> Result<Sharding> {
    return tiny_sharding(tensor.shape.size(), mesh, cut);
  };
}

TEST(Reshard, TheStateIsTheSameAndTheReadsAreFewer) {
  auto store = make_memory_store();
  const TinyRanks writers(30, 8, TinyCut::last_dim_reversed);
  for (const auto& ending : group_save(*store, writers)) ASSERT_EQ(text_of(ending), "saved");
  const Folder folder{objects_in(*store), "c"};
  const std::string hash = state_hash(open_step(folder, 30).value()).value();
  const Manifest before = load_manifest(folder, 30).value();
  SaveOptions options;
  for (const int ranks : {2, 6, 3, 1}) {
    const Mesh mesh = tiny_mesh(ranks);
    const auto report = reshard(open_step(folder, 30).value(), mesh, cut_as(TinyCut::first_dim, mesh), options);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_LE(report->reads_after, report->reads_before) << ranks;
    const Checkpoint after = open_step(folder, 30).value();
    EXPECT_EQ(state_hash(after).value(), hash);
    EXPECT_EQ(verify_tiny(after), "");
    EXPECT_EQ(verify_on_ranks(after, ranks, TinyCut::first_dim), "");
    EXPECT_EQ(after.manifest().extra, before.extra);
    EXPECT_EQ(after.manifest().date, before.date);
    EXPECT_EQ(after.manifest().metric, before.metric);
    EXPECT_EQ(files_too_many(*store), std::set<std::string>());
  }
  EXPECT_EQ(load_manifest(folder, 30)->chunks.size(), 1U) << "one rank, one file";
}

// Resharding is atomic: a crash at any call leaves the checkpoint whole, with one sharding or the other.
TEST(Reshard, WholeOrAsItWas) {
  auto before = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*before), "c"}, 30, tiny_options()));
  const Mesh mesh = tiny_mesh(4);
  const auto act = [&](Store& store) {
    const Folder folder{objects_in(store), "c"};
    return reshard(open_step(folder, 30).value(), mesh, cut_as(TinyCut::each_axis_a_dim, mesh), tiny_options());
  };
  FaultyStore counted(*before);
  ASSERT_TRUE(act(counted));
  for (std::int64_t call = 1; call <= counted.changing_calls(); ++call) {
    for (const Unsynced mode : {Unsynced::lost, Unsynced::kept, Unsynced::torn}) {
      FaultyStore store(*before);
      store.inject(Fault::dies_after(call));
      EXPECT_THROW(static_cast<void>(act(store)), SimulatedCrash);
      const auto survivor = store.survivor(mode, static_cast<std::uint64_t>(call));
      const auto opened = open_step({objects_in(*survivor), "c"}, 30);
      ASSERT_TRUE(opened) << "call " << call << " " << store.calls().back();
      EXPECT_EQ(verify_tiny(*opened), "");
    }
    FaultyStore store(*before);
    store.inject(Fault::fails(call, 28));  // ENOSPC
    static_cast<void>(act(store));
    EXPECT_EQ(verify_tiny(open_step({objects_in(store), "c"}, 30).value()), "");
  }
}

// A bucket whose list of manifests is an old one.
class OldList : public FaultyObjects {
 public:
  using FaultyObjects::FaultyObjects;
  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override {
    ObjectList all = TRY(FaultyObjects::list(prefix, depth));
    std::erase_if(all.objects,
                  [](const ObjectEntry& object) { return object.path == "c/manifests/000000000030.json"; });
    return all;
  }
};

TEST(Reshard, ByAnOldListNothingIsRemoved) {
  auto store = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*store), "c"}, 30, tiny_options()));
  const auto objects = objects_in(*store);
  const Folder folder{std::make_shared<OldList>(*objects), "c"};
  ASSERT_EQ(folder.manifest(30), "c/manifests/000000000030.json");
  const Mesh mesh = tiny_mesh(4);
  ASSERT_TRUE(reshard(open_step(folder, 30).value(), mesh, cut_as(TinyCut::each_axis_a_dim, mesh), tiny_options()));
  EXPECT_EQ(verify_tiny(open_step(folder, 30).value()), "");
}

TEST(Reshard, ACutThatCannotBeIsRefusedBeforeAnythingIsWritten) {
  auto store = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*store), "c"}, 30, tiny_options()));
  const Folder folder{objects_in(*store), "c"};
  const std::string before = read_text(*store, folder.manifest(30)).value();
  const auto refused = reshard(
      open_step(folder, 30).value(), tiny_mesh(2), [](const TensorEntry&) { return Sharding::parse("{nowhere}"); },
      tiny_options());
  ASSERT_FALSE(refused);
  EXPECT_EQ(read_text(*store, folder.manifest(30)).value(), before);
}

}  // namespace
}  // namespace systole::checkpoint
