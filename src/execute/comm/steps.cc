#include "execute/comm/steps.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "execute/comm/sums.h"
#include "ground/mesh/collective.h"

namespace systole {
namespace {

// Rows of bytes: a slice of a tensor along one dim.
template <typename Byte>
struct Rows {
  Byte* data = nullptr;
  std::int64_t bytes = 0, row = 0, stride = 0;
};
using Source = Rows<const std::byte>;
using Landing = Rows<std::byte>;

template <typename Byte>
Rows<Byte> run(Byte* data, std::int64_t bytes) {
  return {data, bytes, bytes, bytes};
}

// Part `i` of `parts` along `dim` of the tensor at `data`.
template <typename Byte>
Rows<Byte> part_of(Byte* data, DType dtype, const Shape& shape, int dim, std::int64_t parts, std::int64_t i) {
  std::int64_t rows = 1, row = size_of(dtype);
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) (d < dim ? rows : row) *= shape[static_cast<std::size_t>(d)];
  const std::int64_t stride = row;
  row /= parts;
  if (rows == 1) return run(data + i * row, row);
  return {data + i * row, rows * row, row, stride};
}

Outgoing outgoing(std::int64_t to, const Source& part) {
  return {static_cast<std::int32_t>(to), part.data, Bytes(part.bytes), Bytes(part.row), Bytes(part.stride)};
}
Incoming incoming(std::int64_t from, const Landing& part) {
  return {static_cast<std::int32_t>(from), part.data, Bytes(part.bytes), Bytes(part.row), Bytes(part.stride)};
}

std::function<void()> copy(const Source& from, const Landing& into) {
  return [from = outgoing(0, from), into = incoming(0, into)] {
    for (Bytes at{}; at < from.bytes;) {
      const std::span<const std::byte> piece = run_at(from, at, from.bytes);
      take_piece(into, at, piece);
      at += Bytes(piece.size());
    }
  };
}

Source as_source(const Landing& part) { return {part.data, part.bytes, part.row, part.stride}; }

class Builder {
 public:
  Builder(const CollectiveCall& call, const Collective& collective, const std::vector<std::int64_t>& group,
          std::int64_t me, const CollectivePlaces& places, std::vector<Transfer> transfers)
      : call_(call),
        collective_(collective),
        group_(group),
        me_(me),
        places_(places),
        transfers_(std::move(transfers)),
        combine_(combine_of(call.dtype, call.maximum)) {
    for (const Transfer& t : transfers_) last_ = std::max(last_, t.step);
    steps_.resize(static_cast<std::size_t>(last_) + 2);  // plus one at the end, for remaining local work
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s].number = static_cast<int>(s);
  }

  std::vector<CollectiveStep> take() {
    if (rounds_once(call_)) {
      widened_sum();
    } else {
      switch (call_.kind) {
        case CollectiveKind::all_reduce: all_reduce(); break;
        case CollectiveKind::reduce_scatter: reduce_scatter(); break;
        case CollectiveKind::all_gather: all_gather(); break;
        case CollectiveKind::all_to_all: all_to_all(); break;
        case CollectiveKind::collective_permute: collective_permute(); break;
        case CollectiveKind::broadcast: CHECK(false, "no node broadcasts");
      }
    }
    for (CollectiveStep& step : steps_) in_turn(step);
    std::erase_if(steps_, [](const CollectiveStep& s) { return s.before.empty() && s.out.empty() && s.in.empty(); });
    return std::move(steps_);
  }

 private:
  // Calls `send(transfer, step)` for each transfer that this rank sends, `receive` for each it receives.
  template <typename Send, typename Receive>
  void each(const Send& send, const Receive& receive) {
    for (const Transfer& t : transfers_) {
      if (t.from == me_) send(t, steps_[static_cast<std::size_t>(t.step)]);
      if (t.to == me_) receive(t, steps_[static_cast<std::size_t>(t.step)]);
    }
  }
  std::int64_t rank(std::int32_t place) const { return group_[static_cast<std::size_t>(place)]; }
  CollectiveStep& first() { return steps_.front(); }
  CollectiveStep& end() { return steps_.back(); }
  bool direct() const { return call_.algorithm == CollectiveAlgorithm::direct; }
  std::int64_t chunk_at(Bytes offset) const {  // if all chunks have one size
    return offset.count() / (collective_.bytes.count() / call_.parts);
  }

  // Contiguous bytes. `direct` adds to its own chunk only and sends the operand unchanged.
  void all_reduce() {
    const std::byte* from = places_.from;
    std::byte* into = places_.into;
    if (from != into) {
      const ByteSpan own = direct() ? chunk_of(collective_, me_) : ByteSpan{Bytes(0), collective_.bytes};
      const std::int64_t begin = own.begin.count(), bytes = (own.end - own.begin).count();
      if (bytes > 0) first().before.push_back(copy(run(from + begin, bytes), run(into + begin, bytes)));
    }
    each(
        [&](const Transfer& t, CollectiveStep& step) {
          const std::byte* data = direct() && t.step == 0 ? from : into;
          step.out.push_back(outgoing(rank(t.to), run(data + t.from_offset.count(), t.bytes.count())));
        },
        [&](const Transfer& t, CollectiveStep& step) { step.in.push_back(added(t, into)); });
  }

  Incoming added(const Transfer& t, std::byte* buffer) const {
    Incoming in = incoming(rank(t.from), run(buffer + t.to_offset.count(), t.bytes.count()));
    in.grain = in.into_grain = collective_.grain;
    if (t.reduce) in.combine = combine_;
    return in;
  }

  Source operand_part(std::int64_t i) const {
    return part_of(places_.from, call_.dtype, call_.shape, call_.dim, call_.parts, i);
  }

  void reduce_scatter() {
    const std::int64_t part = collective_.bytes.count() / call_.parts;
    if (part == 0) return;
    if (direct()) {
      first().before.push_back(copy(operand_part(me_), run(places_.into, part)));
      each(
          [&](const Transfer& t, CollectiveStep& step) {
            step.out.push_back(outgoing(rank(t.to), operand_part(chunk_at(t.from_offset))));
          },
          [&](const Transfer& t, CollectiveStep& step) {
            step.in.push_back(added(t, places_.into - t.to_offset.count()));
          });
      return;
    }
    // Chunks that pass through are added to on the way: in a copy of the operand.
    std::byte* whole = places_.workspace;
    for (std::int64_t i = 0; i < call_.parts; ++i)
      first().before.push_back(copy(operand_part(i), run(whole + i * part, part)));
    each(
        [&](const Transfer& t, CollectiveStep& step) {
          step.out.push_back(
              outgoing(rank(t.to), run<const std::byte>(whole + t.from_offset.count(), t.bytes.count())));
        },
        [&](const Transfer& t, CollectiveStep& step) { step.in.push_back(added(t, whole)); });
    end().before.push_back(copy(run<const std::byte>(whole + me_ * part, part), run(places_.into, part)));
  }

  void all_gather() {
    const std::int64_t part = collective_.bytes.count() / call_.parts;
    if (part == 0) return;
    Shape whole = call_.shape;
    whole[static_cast<std::size_t>(call_.dim)] *= call_.parts;
    const auto place = [&](std::int64_t i) {
      return part_of(places_.into, call_.dtype, whole, call_.dim, call_.parts, i);
    };
    first().before.push_back(copy(run(places_.from, part), place(me_)));
    each(
        [&](const Transfer& t, CollectiveStep& step) {
          const std::int64_t i = chunk_at(t.from_offset);
          step.out.push_back(outgoing(rank(t.to), i == me_ ? run(places_.from, part) : as_source(place(i))));
        },
        [&](const Transfer& t, CollectiveStep& step) {
          step.in.push_back(incoming(rank(t.from), place(chunk_at(t.to_offset))));
        });
  }

  void all_to_all() {
    if (collective_.bytes == Bytes(0)) return;
    Shape result = call_.shape;
    result[static_cast<std::size_t>(call_.split_dim)] /= call_.parts;
    result[static_cast<std::size_t>(call_.concat_dim)] *= call_.parts;
    const auto source = [&](std::int64_t i) {
      return part_of(places_.from, call_.dtype, call_.shape, call_.split_dim, call_.parts, i);
    };
    const auto place = [&](std::int64_t i) {
      return part_of(places_.into, call_.dtype, result, call_.concat_dim, call_.parts, i);
    };
    first().before.push_back(copy(source(me_), place(me_)));
    each([&](const Transfer& t, CollectiveStep& step) { step.out.push_back(outgoing(rank(t.to), source(t.to))); },
         [&](const Transfer& t, CollectiveStep& step) { step.in.push_back(incoming(rank(t.from), place(t.from))); });
  }

  // No intermediate copy: the operand is sent, and the result arrives in its own place.
  void collective_permute() {
    const std::int64_t bytes = collective_.bytes.count();
    if (bytes == 0) return;
    if (transfers_.empty()) first().before.push_back(copy(run(places_.from, bytes), run(places_.into, bytes)));
    each([&](const Transfer& t,
             CollectiveStep& step) { step.out.push_back(outgoing(rank(t.to), run(places_.from, bytes))); },
         [&](const Transfer& t, CollectiveStep& step) {
           step.in.push_back(incoming(rank(t.from), run(places_.into, bytes)));
         });
  }

  // bf16 and f16, by `direct`: each part is sent to its owner as it is and added in f32; the sum is rounded once.
  void widened_sum() {
    const WidenedSum sum = widened_sum_of(call_.dtype);
    const bool gathers = call_.kind == CollectiveKind::all_reduce;
    const ByteSpan own = chunk_of(collective_, me_);
    const std::int64_t bytes = (own.end - own.begin).count(), grain = collective_.grain.count();
    auto* sums = reinterpret_cast<float*>(places_.workspace);
    std::byte* result = gathers ? places_.into + own.begin.count() : places_.into;
    if (bytes > 0) {
      widen_own(sum, sums, own);
      steps_[1].before.push_back([=] { sum.round(result, sums, bytes / grain); });
    }
    each(
        [&](const Transfer& t, CollectiveStep& step) {
          const std::byte* data = t.step == 0 ? places_.from : places_.into;
          step.out.push_back(outgoing(rank(t.to), gathers ? run(data + t.from_offset.count(), t.bytes.count())
                                                          : operand_part(chunk_at(t.from_offset))));
        },
        [&](const Transfer& t, CollectiveStep& step) {
          if (t.reduce) {
            Incoming in = incoming(rank(t.from), run(reinterpret_cast<std::byte*>(sums), t.bytes.count()));
            in.combine = sum.add, in.grain = collective_.grain, in.into_grain = Bytes(sizeof(float));
            step.in.push_back(in);
          } else {
            step.in.push_back(added(t, places_.into));
          }
        });
  }

  void widen_own(const WidenedSum& sum, float* sums, const ByteSpan& own) {
    const Source part = call_.kind == CollectiveKind::all_reduce
                            ? run(places_.from + own.begin.count(), (own.end - own.begin).count())
                            : operand_part(me_);
    first().before.push_back([=, grain = collective_.grain.count()] {
      for (std::int64_t r = 0; r * part.row < part.bytes; ++r)
        sum.widen(sums + r * part.row / grain, part.data + r * part.stride, part.row / grain);
    });
  }

  // Messages that are added into one place are added in list order.
  static void in_turn(CollectiveStep& step) {
    std::map<const std::byte*, int> last;
    for (int i = 0; i < static_cast<int>(step.in.size()); ++i) {
      Incoming& in = step.in[static_cast<std::size_t>(i)];
      if (in.combine == nullptr) continue;
      const auto [before, fresh] = last.try_emplace(in.into, i);
      if (!fresh) in.after = before->second;
      before->second = i;
    }
  }

  const CollectiveCall& call_;
  const Collective& collective_;
  const std::vector<std::int64_t>& group_;
  const std::int64_t me_;
  const CollectivePlaces places_;
  const std::vector<Transfer> transfers_;
  const CombinePiece combine_;
  int last_ = 0;
  std::vector<CollectiveStep> steps_;
};

Status check_sum(const CollectiveCall& call) {
  if (!call.reduces()) return {};
  if (rounds_once(call)) {
    if (call.algorithm == CollectiveAlgorithm::direct) return {};
    return error(ErrorKind::unsupported, "{} of {} by {} would round the sum more than once", name_of(call.kind),
                 name_of(call.dtype), name_of(call.algorithm))
        .hinted("algorithm: direct; or reduce in f32");
  }
  if (combine_of(call.dtype, call.maximum) != nullptr) return {};
  return error(ErrorKind::unsupported, "{} of {}: there is no {} of them", name_of(call.kind), name_of(call.dtype),
               call.maximum ? "largest" : "sum");
}

}  // namespace

Result<std::vector<CollectiveStep>> steps_of(const CollectiveCall& call, const Collective& collective,
                                             const std::vector<std::int64_t>& group, std::int64_t me,
                                             const CollectivePlaces& places) {
  if (call.parts == 1) {
    CollectiveStep step;
    const std::int64_t bytes = collective.bytes.count();
    if (places.from != places.into && bytes > 0)
      step.before.push_back(copy(run(places.from, bytes), run(places.into, bytes)));
    return std::vector{std::move(step)};
  }
  TRY(check_sum(call));
  return Builder(call, collective, group, me, places, TRY(transfers_of(collective, call.algorithm))).take();
}

}  // namespace systole
