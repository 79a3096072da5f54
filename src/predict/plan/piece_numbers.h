#pragma once
// Visits all numbers of a piece that depend on sizes, in an order that depends on its structure alone, and tells
// whether two pieces have the same structure.

#include "predict/plan/pieces.h"

namespace systole {

template <typename Function, typename Visit>
void visit_function(Function& function, Visit& visit) {
  for (auto& stretch : function) {
    for (auto& dims : stretch.products)
      for (auto* number : {&dims.batch, &dims.rows, &dims.columns, &dims.summed}) visit(*number);
    for (auto& attention : stretch.attention)
      for (auto* number : {&attention.shape.rows, &attention.shape.queries, &attention.shape.keys_of_row})
        visit(*number);
    for (auto* number : {&stretch.quantised, &stretch.moved, &stretch.kernels, &stretch.converted, &stretch.converting,
                         &stretch.updated, &stretch.summed, &stretch.summing, &stretch.flops, &stretch.model_flops})
      visit(*number);
    for (auto& message : stretch.messages) visit(message.bytes);
  }
}

template <typename Visit>
void visit_numbers(auto& piece, Visit visit) requires requires {
  piece.kept;
}
{
  visit_function(piece.work.forward, visit);
  visit_function(piece.work.backward, visit);
  for (auto& handover : piece.work.sent) visit(handover.bytes);
  for (auto& handover : piece.work.sent_back) visit(handover.bytes);
  for (auto* number : {&piece.kept_by_layer, &piece.kept, &piece.logits}) visit(*number);
}

template <typename Visit>
void visit_numbers(auto& piece, Visit visit) requires requires {
  piece.state;
}
{
  visit_function(piece.work, visit);
  for (auto& tie : piece.ties) visit(tie.bytes);
  for (auto* number : {&piece.parameters, &piece.state, &piece.gradients, &piece.reduced, &piece.copies})
    visit(*number);
}

bool alike(const ChunkPiece& a, const ChunkPiece& b);
bool alike(const AfterPiece& a, const AfterPiece& b);

inline Error unlike(std::string_view what) { return error(ErrorKind::unsupported, "cannot be composed: {}", what); }

}  // namespace systole
