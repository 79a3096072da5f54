// The list of images: pinned, dated, and the user's own.
#include "ground/catalog/image.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace systole {
namespace {

TEST(CatalogImages, are_pinned_and_dated) {
  const std::vector<ImageRow> images = catalog_images().value();
  ASSERT_GE(images.size(), 4u);
  for (const char* kind : {"cpu", "cuda", "tpu"}) {
    const auto found = std::ranges::find_if(images, [&](const ImageRow& row) {
      return row.for_models && std::ranges::find(row.accelerators, kind) != row.accelerators.end();
    });
    EXPECT_NE(found, images.end()) << kind;
  }
  for (const ImageRow& row : images) {
    EXPECT_FALSE(is_floating_tag(row.tag)) << row.tagged();
    EXPECT_TRUE(is_date(row.dated.date)) << row.tagged();
    EXPECT_FALSE(row.dated.source.empty()) << row.tagged();
  }
}

TEST(CatalogImages, tags_that_move_are_known) {
  for (const char* tag :
       {"latest", "12-slim", "12.1-runtime", "bookworm-slim", "3.12", "nightly", "", "3", "13.0-base"})
    EXPECT_TRUE(is_floating_tag(tag)) << tag;
  for (const char* tag :
       {"13.0.2-base-ubuntu24.04", "bookworm-20260918-slim", "25.10-py3", "2.13.0-cuda13.0-cudnn9-runtime", "v1.2.3"})
    EXPECT_FALSE(is_floating_tag(tag)) << tag;
}

TEST(CatalogImages, of_the_users_take_the_place_of_those_of_their_name) {
  const auto with = [](const std::string& digest) {
    return catalog_images(std::vector<CatalogFile>{{"/home/me/images.csv",
                                                    "name,tag,digest,accelerator,use,source,date\n"
                                                    "nvidia/cuda,13.0.2-cudnn-runtime-ubuntu24.04," +
                                                        digest + ",cuda,model,pulled,2026-11-24\n"},
                                                   {"prices.csv", "not read here"}});
  };
  const std::string digest = "sha256:" + std::string(64, 'b');
  const std::vector<ImageRow> images = with(digest).value();
  EXPECT_EQ(images.size(), catalog_images()->size());
  EXPECT_EQ(images.back().reference(), "nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04@" + digest);
  EXPECT_EQ(with("sha256:12").error().message, "'sha256:12' is no digest");
  const auto floats = catalog_images(std::vector<CatalogFile>{
      {"images.csv", "name,tag,accelerator,use,source,date\na,12.1-runtime,cuda,model,x,2026-11-24\n"}});
  EXPECT_EQ(floats.error().message, "'12.1-runtime' is another image from time to time");
}

}  // namespace
}  // namespace systole
