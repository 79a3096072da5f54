#pragma once
// The writers of one checkpoint. Each writes what it owns; they communicate only through the folder:
//
//   parts/claim.json                  the launch and generation that may save here; written when a generation begins
//   parts/generation-<launch>-<n>     marks that this generation has begun; empty, never overwritten
//   parts/<save>/begun-<rank>         this rank saves; empty, removed when rank 0 has given the save up or ended it
//   parts/<save>/part-<rank>.json     "my chunks are durable, these are my pieces", or the error (part.h)
//   parts/<save>/outcome.json         how the save ended; written by rank 0 after its sweep
//
//   every rank   checks that the claim is still its own, writes its chunks, then its part
//   rank 0       waits for the parts of this save, commits one manifest for all, sweeps, writes the outcome
//   the others   wait for the outcome, so that no rank begins the next save during rank 0's sweep
//
// A save is named <launch>-<generation>-<number>, so a part of another launch, an older generation or an earlier
// attempt is never mistaken for one of this save. None of these files looks like a checkpoint; a sweep removes those of
// finished saves.
//
// A stale process of an older generation finds the newer claim before it writes, before it commits and before each file
// that it would remove. There is no lock between this check and the action: if the process is stopped exactly there,
// the worst case is a manifest whose chunks are gone, which restoring skips. It cannot replace a manifest that a newer
// generation has put for the same step (save.h).

#include <cstdint>
#include <string>

#include "execute/checkpoint/folder.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::checkpoint {

// This process among the writers. The default is a single writer, which needs no claim.
struct SaveGroup {
  int rank = 0, world = 1;
  std::string launch;  // letters, digits, '-'; unique per launch. Empty: no claim; then world is 1
  std::int64_t generation = 0;
  Clock* clock = nullptr;  // REQUIRED if world > 1
  Seconds patience{120};   // how long a rank may be late
  Seconds poll{0.01};      // interval between two looks into the folder

  bool alone() const { return world == 1; }
};

// Errors: invalid (a rank outside the world, no launch or clock although world > 1, a launch with other characters).
Status check(const SaveGroup& group);

// The name of the group's n-th save. All ranks count alike, from 1 in each generation.
std::string save_name(const SaveGroup& group, std::int64_t number);

// Takes the folder for this launch and generation, whoever holds it; durable on return. One process of a generation
// calls it when the generation begins, before any rank saves. Errors: busy (a newer generation of this launch holds the
// folder), io.
Status claim(const Folder& folder, const SaveGroup& group);

// Checks that the folder belongs to this generation. If it is unclaimed or an older generation's, rank 0 claims it,
// also from a stale process that wakes up in the middle of claiming; the other ranks accept that. Errors: busy, naming
// the holder; corrupt, io.
Status check_claim(const Folder& folder, const SaveGroup& group);

}  // namespace systole::checkpoint
