/// Zachary's karate club: who met whom outside the club, and whom they followed when it split; 34 members, 78 ties.
/// W. W. Zachary, An Information Flow Model for Conflict and Fission in Small Groups, J. Anthropological Research 33, 1977:
/// edges of figure 1 and matrix E, sides of table 3 ("club after split"). Members count from 0 here, from 1 there.
///
///   const Tensor adjacency = normalized_adjacency(karate_club().nodes, karate_club().edges);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fathom {

struct Graph {
  std::int64_t nodes = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      edges;                         ///< each undirected edge once, the smaller node first
  std::vector<std::int64_t> labels;  ///< one a node
};

/// Label 0: stayed with the instructor, Mr. Hi (node 0); 1: left with the officers (node 33).
const Graph& karate_club();

}  // namespace fathom
