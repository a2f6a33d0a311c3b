//! Pages: a client asks, a server answers, several times in turn with time to think between an answer and the next question.
//!
//! The server answers as soon as all of a request has come. Over one connection, or each request over one of its own, which
//! opens when the request is made: then the handshake is part of its time.

use transport::tcp::Connection;
use units::{Bytes, Time};

use crate::error::{BuildError, refuse};
use crate::event::Event;
use crate::flow::{FlowId, TcpFlow};
use crate::network::{Action, Network};
use crate::page::{Exchange, PageFlow, PageId, RequestResponse};

impl Network {
    /// Adds a page; gives its number and its flows, one for each connection.
    ///
    /// # Errors
    /// As [`Network::tcp`]; and requests, responses or a number of objects of zero.
    pub fn page(&mut self, page: PageFlow) -> Result<(PageId, Vec<FlowId>), BuildError> {
        self.unite_for("a flow is added while it runs");
        if page.request.is_zero() || page.response.is_zero() || page.objects == 0 {
            return refuse(
                "a page asks for nothing: its request, its response and its number of objects must be above 0"
                    .to_owned(),
            );
        }
        let number = self.pages.len() as u32;
        let connection = TcpFlow { size: None, stop: None, ..page.flow.clone() };
        let first = self.add_tcp(connection.clone(), number)?;
        let mut flows = vec![first.0];
        for _ in 1..if page.persistent { 1 } else { page.objects } {
            flows.push(self.add_tcp(connection.clone(), number)?.0);
        }
        self.plan(page.flow.start, Action::Start(first.1));
        let ask = self.actions.len() as u32;
        self.actions.push(Action::Ask(number));
        self.pages.push(RequestResponse { page, first, exchanges: Vec::new(), ask, heard: true });
        Ok((PageId(number), flows))
    }

    /// What was asked and answered so far.
    pub fn exchanges(&self, page: PageId) -> &[Exchange] {
        let client = self.pages[page.0 as usize].first.1 * 2;
        &self.at_endpoint(client as usize).pages[page.0 as usize].exchanges
    }

    /// The client makes the next request.
    pub(crate) fn ask(&mut self, number: u32) {
        let page = &mut self.pages[number as usize];
        let plan = page.plan(page.exchanges.len());
        let flow = FlowId(page.first.0.0 + (plan - page.first.1));
        page.exchanges.push(Exchange { flow, asked: Time::from_ps(self.now), answered: None });
        page.heard = false;
        let request = page.page.request.get();
        if let Some(client) = &mut self.endpoints[2 * plan as usize].connection {
            client.write(request);
            self.pump(2 * plan);
        }
    }

    /// Something has come to an endpoint of a page.
    pub(crate) fn on_page(&mut self, number: u32, index: u32) {
        let page = &mut self.pages[number as usize];
        let Some(current) = page.exchanges.len().checked_sub(1) else { return };
        let plan = page.plan(current);
        let Some(connection) = &mut self.endpoints[index as usize].connection else { return };
        if index / 2 != plan {
            return;
        }
        let has_all = |connection: &Connection, each: Bytes, count: u64| {
            connection.bytes_received() >= each.get().saturating_mul(count)
        };
        if index % 2 == 1 {
            if !page.heard && has_all(connection, page.page.request, page.on_connection()) {
                page.heard = true;
                connection.write(page.page.response.get());
            }
            return;
        }
        let exchange = &page.exchanges[current];
        if exchange.answered.is_some() || !has_all(connection, page.page.response, page.on_connection()) {
            return;
        }
        let now = Time::from_ps(self.now);
        page.exchanges[current].answered = Some(now);
        let last = page.exchanges.len() as u32 == page.page.objects;
        if last || !page.page.persistent {
            connection.close();
            self.plans[plan as usize].outcome.finished = Some(now);
        }
        if !last {
            let (at, next) = (now + page.page.think, plan + 1);
            if page.page.persistent {
                self.events.push(at.as_ps().max(self.now), Event::Action(page.ask));
            } else {
                self.plan(at, Action::Start(next));
            }
        }
    }
}
