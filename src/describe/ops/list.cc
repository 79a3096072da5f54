// The one list of ops. A new op is a new file and a new line here.

#include "describe/ops/list.h"

#include <deque>

#include "describe/ops/routing.h"

namespace systole {
namespace {

class List {
 public:
  List() {
    using namespace ops;
    for (auto family : {elementwise_ops, cast_ops, constant_ops, broadcast_ops, reshape_ops, movement_ops, cache_ops,
                        paged_ops, reduce_ops, cross_entropy_ops, rms_norm_ops, layer_norm_ops, embedding_ops, int8_ops,
                        routing_ops, attention_ops, collective_ops, transfer_ops}) {
      for (OpDef& op : family()) add(std::move(op));
    }
    for (auto make : {contract_op, contract_int4_op, lora_rows_op, softmax_op, rotary_op, dropout_op, adamw_op, sgd_op,
                      take_part_op, repeat_op, fusion_op})
      add(make());
  }
  std::span<const OpDef* const> all() const { return pointers_; }

 private:
  void add(OpDef op) {
    ops_.push_back(std::move(op));
    pointers_.push_back(&ops_.back());
  }
  std::deque<OpDef> ops_;
  std::vector<const OpDef*> pointers_;
};

}  // namespace

std::span<const OpDef* const> all_ops() {
  static const List list;  // initialized by the first call, then constant
  return list.all();
}

}  // namespace systole
