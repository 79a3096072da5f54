#include "operate/targets/kubernetes/kube_fields.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Node object(const char* text) { return parse_yaml(text, "object").value(); }

TEST(KubeFields, are_empty_where_there_is_no_text) {
  const Node node = object("{metadata: {name: a, labels: {systole/run: line}, uid: null, owner: {}}, n: 4}");
  EXPECT_EQ(name_of(node), "a");
  EXPECT_EQ(label_of(node, "systole/run"), "line");
  EXPECT_EQ(label_of(node, "other"), "");
  EXPECT_EQ(text_at(node, {"metadata", "uid"}), "");
  EXPECT_EQ(text_at(node, {"metadata", "owner"}), "");
  EXPECT_EQ(text_at(node, {"metadata", "name", "deeper"}), "");
  EXPECT_EQ(number_at(node, {"n"}), 4);
  EXPECT_EQ(number_at(node, {"metadata", "name"}, 7), 7);
  EXPECT_EQ(at(node, {"spec"}), nullptr);
}

TEST(KubeFields, the_container_with_the_ranks_is_ours_wherever_it_stands) {
  EXPECT_EQ(container_of(object("{spec: {containers: [{name: istio-proxy}, {name: systole}]}}")), "systole");
  EXPECT_EQ(container_of(object("{spec: {containers: [{name: pytorch}, {name: istio-proxy}]}}")), "pytorch");
  EXPECT_EQ(container_of(object("{spec: {containers: []}}")), "systole");
}

}  // namespace
}  // namespace systole
