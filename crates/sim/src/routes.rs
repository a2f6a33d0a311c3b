//! Shortest paths by number of hops, with all ties.

use std::collections::VecDeque;

/// `links[node]` lists (port, node at its other end). Gives, for each node, the ports that lead to `target` by a shortest
/// way, in order of their numbers; empty where there is none.
pub(crate) fn towards(
    target: u32,
    links: &[Vec<(u32, u32)>],
    transit: impl Fn(u32) -> bool,
) -> Vec<Vec<u32>> {
    let mut distance = vec![u32::MAX; links.len()];
    let mut todo = VecDeque::from([target]);
    distance[target as usize] = 0;
    while let Some(node) = todo.pop_front() {
        // A host passes nothing on.
        if node != target && !transit(node) {
            continue;
        }
        for &(_, other) in &links[node as usize] {
            if distance[other as usize] == u32::MAX {
                distance[other as usize] = distance[node as usize] + 1;
                todo.push_back(other);
            }
        }
    }
    let next = |node: u32| {
        let here = distance[node as usize];
        links[node as usize]
            .iter()
            .filter(|(_, other)| {
                here != u32::MAX && distance[*other as usize] < here && (*other == target || transit(*other))
            })
            .map(|(port, _)| *port)
            .collect()
    };
    (0..links.len() as u32).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_has_two_ways() {
        // 0 - {1, 2} - 3, ports numbered as they come
        let links =
            vec![vec![(0, 1), (1, 2)], vec![(2, 0), (3, 3)], vec![(4, 0), (5, 3)], vec![(6, 1), (7, 2)]];
        let routes = towards(3, &links, |_| true);
        assert_eq!(routes, [vec![0, 1], vec![3], vec![5], vec![]]);
        // A host in the way is no way.
        assert_eq!(towards(3, &links, |n| n != 1)[0], [1]);
    }
}
